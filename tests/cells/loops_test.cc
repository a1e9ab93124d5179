// dynamic_rnn and stack_bidirectional_dynamic_rnn: scopes, lengths, layouts, gradients, errors.
#include <cmath>

#include "cells/support.h"

namespace openrnn {
namespace {

using namespace testing;
using Cells = std::vector<std::shared_ptr<RnnCell>>;

DynamicRnnOptions time_major(std::optional<std::vector<std::int32_t>> lengths = {}) {
  DynamicRnnOptions options;
  options.sequence_lengths = std::move(lengths);
  options.dtype = DType::kFloat32;
  options.time_major = true;
  return options;
}

TEST(DynamicRnn, IsTheCellStepByStep) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kGru, units(3));
  const Tensor x = varied({4, 2, 5});
  const DynamicRnnResult result = dynamic_rnn(*cell, x, time_major());
  EXPECT_EQ(names_of(own.graph)[0], "rnn/cudnn_compatible_gru_cell/gates/kernel");
  CellState state = cell->zero_state(2, DType::kFloat32);
  const std::vector<Tensor> steps = ops::unstack(x), outputs = ops::unstack(result.outputs);
  for (std::size_t t = 0; t < 4; ++t) {
    const CellResult step = (*cell)(steps[t], state);
    state = step.state;
    EXPECT_TRUE(same(step.output, outputs[t]));
  }
  EXPECT_TRUE(same(state[0], result.state[0]));
  DynamicRnnOptions batch_major = time_major();
  batch_major.time_major = false;
  const DynamicRnnResult other = dynamic_rnn(*cell, ops::transpose_leading(x), batch_major);
  EXPECT_TRUE(same(ops::transpose_leading(other.outputs), result.outputs));
  batch_major.initial_state = result.state;
  EXPECT_FALSE(
      same(dynamic_rnn(*cell, ops::transpose_leading(x), batch_major).outputs, other.outputs));
}

// Every row as if it were alone and as long as it says; NaN in the padding changes nothing.
TEST(DynamicRnn, RowsEndAtTheirLengths) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kLstm, units(3));
  const std::vector<std::int32_t> lengths{2, 4, 0};
  Array padded = varied({4, 3, 5}).to_host();
  for (std::size_t t = 0; t < 4; ++t) {
    for (std::size_t row = 0; row < 3; ++row) {
      if (static_cast<std::int32_t>(t) < lengths[row]) continue;
      for (std::size_t i = 0; i < 5; ++i) padded.as<float>()[(t * 3 + row) * 5 + i] = NAN;
    }
  }
  const Tensor x(padded.view());
  DynamicRnnOptions options = time_major(lengths);
  options.initial_state = {varied({3, 3}, 2), varied({3, 3}, 3)};
  dynamic_rnn(*cell, x, options);
  const GradientTape tape;
  const Tensor watched = tape.watch(x);
  const DynamicRnnResult result = dynamic_rnn(*cell, watched, options);
  const Tensor loss =
      ops::add(ops::reduce_sum(ops::square(result.outputs)), ops::reduce_sum(result.state[0]));
  const Array dx = tape.gradient(loss, {watched})[0].to_host();
  const Array dw = tape.gradient(loss, cell->variables())[0].to_host();
  for (const float value : dw.as<float>()) EXPECT_FALSE(std::isnan(value));
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int32_t length = lengths[static_cast<std::size_t>(row)];
    const auto part = [&](const Tensor& all, std::int64_t axis) {
      return ops::slice(all, {.axis = axis, .begin = row, .size = 1});
    };
    DynamicRnnOptions alone = time_major();
    alone.initial_state = {part((*options.initial_state)[0], 0),
                           part((*options.initial_state)[1], 0)};
    const Tensor own_x = ops::slice(part(x, 1), {.axis = 0, .begin = 0, .size = length});
    const DynamicRnnResult expected = dynamic_rnn(*cell, own_x, alone);
    const Tensor valid =
        ops::slice(part(result.outputs, 1), {.axis = 0, .begin = 0, .size = length});
    EXPECT_TRUE(same(valid, expected.outputs));
    EXPECT_TRUE(same(part(result.state[0], 0), expected.state[0]));
    EXPECT_TRUE(same(part(result.state[1], 0), expected.state[1]));
    for (std::int64_t t = length; t < 4; ++t) {
      for (std::int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(element(dx.view(), (t * 3 + row) * 5 + i), 0.0);
      }
      for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(element(result.outputs.to_host().view(), (t * 3 + row) * 3 + i), 0.0);
      }
    }
  }
}

// The zeros that it starts from have the dtype of the call, when it runs later as well.
TEST(DynamicRnn, ReplaysInItsOwnDtype) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;  // of processors
    for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
      SCOPED_TRACE(dtype_name(dtype));
      const OwnGraph own;
      const auto cell = make_compatible_cell(mode, units(3, dtype));
      const auto back = make_compatible_cell(mode, units(3, dtype));
      DynamicRnnOptions options = time_major();
      options.dtype = dtype;
      StackBidirectionalOptions both;
      both.dtype = dtype;
      const Tensor x = varied({4, 2, 5}, 1, dtype), in = Input({-1, -1, 5}, dtype);
      const auto run = [&](const Tensor& from) {
        const DynamicRnnResult one = dynamic_rnn(*cell, from, options);
        return std::vector{one.outputs, one.state[0]};
      };
      const std::vector<Tensor> wanted = run(x);
      const std::vector<Tensor> found = Model({in}, run(in))({x});
      EXPECT_TRUE(same(found[0], wanted[0]));
      EXPECT_TRUE(same(found[1], wanted[1]));
      const auto stack = [&](const Tensor& from) {
        return stack_bidirectional_dynamic_rnn({cell}, {back}, from, both).outputs;
      };
      const Tensor two_ways = stack(x);
      EXPECT_TRUE(same(Model({in}, {stack(in)})({x})[0], two_ways));
    }
  }
}

TEST(DynamicRnn, EdgesOfTimeAndBatch) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kRnnRelu, units(3));
  const DynamicRnnResult none = dynamic_rnn(*cell, varied({0, 2, 5}), time_major());
  EXPECT_EQ(none.outputs.shape(), (Shape{0, 2, 3}));
  EXPECT_EQ(none.state[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(own.graph.variables().size(), 2u);
  EXPECT_EQ(dynamic_rnn(*cell, varied({2, 0, 5}), time_major()).outputs.shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(dynamic_rnn(*cell, varied({1, 1, 5}), time_major({{1}})).outputs.shape(),
            (Shape{1, 1, 3}));
}

// Central differences in float64 through lengths, directions and two layers.
TEST(StackBidirectional, Gradients) {
  const OwnGraph own;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    SCOPED_TRACE(to_string(mode));
    Cells fw, bw;
    for (int i = 0; i < 2; ++i) {
      fw.push_back(make_compatible_cell(mode, units(3, DType::kFloat64)));
      bw.push_back(make_compatible_cell(mode, units(3, DType::kFloat64)));
    }
    StackBidirectionalOptions options;
    options.dtype = DType::kFloat64;
    options.sequence_lengths = {{3, 1}};
    options.time_major = true;
    options.scope = std::string(to_string(mode));
    const Tensor x = varied({3, 2, 4}, 1, DType::kFloat64);
    const auto loss = [&](const Tensor& input) {
      const auto result = stack_bidirectional_dynamic_rnn(fw, bw, input, options);
      return ops::add(ops::reduce_sum(ops::square(result.outputs)),
                      ops::reduce_sum(result.states_bw[1][0]));
    };
    loss(x);
    const GradientTape tape;
    const Tensor watched = tape.watch(x), y = loss(watched);
    const Array dx = tape.gradient(y, {watched})[0].to_host();
    const Variable kernel = bw[0]->variables()[0];
    const Array dw = tape.gradient(y, std::vector<Variable>{kernel})[0].to_host();
    const Array x_values = x.to_host(), w_values = kernel.to_host();
    constexpr double kStep = 1e-5;
    const auto moved = [&](const Array& values, std::int64_t at, double by) {
      Array changed = values;
      changed.as<double>()[static_cast<std::size_t>(at)] += by;
      return changed;
    };
    for (std::int64_t i = 0; i < dx.size(); i += 3) {
      const double up = loss(Tensor(moved(x_values, i, kStep).view())).item();
      const double down = loss(Tensor(moved(x_values, i, -kStep).view())).item();
      EXPECT_NEAR((up - down) / (2 * kStep), element(dx.view(), i), 1e-8) << i;
    }
    for (std::int64_t i = 0; i < dw.size(); i += 5) {
      kernel.assign(moved(w_values, i, kStep).view());
      const double up = loss(x).item();
      kernel.assign(moved(w_values, i, -kStep).view());
      const double down = loss(x).item();
      EXPECT_NEAR((up - down) / (2 * kStep), element(dw.view(), i), 1e-8) << i;
    }
  }
}

TEST(StackBidirectional, ScopesAndLayouts) {
  const OwnGraph own;
  const Cells fw{make_compatible_cell(RnnMode::kLstm, units(2)),
                 make_compatible_cell(RnnMode::kLstm, units(2))};
  const Cells bw{make_compatible_cell(RnnMode::kLstm, units(3)),
                 make_compatible_cell(RnnMode::kLstm, units(3))};
  StackBidirectionalOptions options;
  options.dtype = DType::kFloat32;
  const Tensor x = varied({2, 4, 5});
  const auto result = stack_bidirectional_dynamic_rnn(fw, bw, x, options);
  EXPECT_EQ(result.outputs.shape(), (Shape{2, 4, 5}));
  EXPECT_EQ(result.states_bw.size(), 2u);
  const std::vector<std::string> names = names_of(own.graph);
  ASSERT_EQ(names.size(), 8u);
  const std::string cell = "/cudnn_compatible_lstm_cell/kernel";
  EXPECT_EQ(names[0], "stack_bidirectional_rnn/cell_0/bidirectional_rnn/fw" + cell);
  EXPECT_EQ(names[2], "stack_bidirectional_rnn/cell_0/bidirectional_rnn/bw" + cell);
  EXPECT_EQ(names[6], "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw" + cell);
  EXPECT_EQ(own.graph.variables()[4].shape(), (Shape{7, 8}));
  options.time_major = true;
  const auto other = stack_bidirectional_dynamic_rnn(fw, bw, ops::transpose_leading(x), options);
  EXPECT_TRUE(same(ops::transpose_leading(other.outputs), result.outputs));
}

TEST(Loops, Errors) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kGru, units(3));
  const Tensor x = varied({4, 2, 5});
  const auto refused = [&](const Tensor& input, const DynamicRnnOptions& options) {
    return thrown<ArgumentError>([&] { dynamic_rnn(*cell, input, options); });
  };
  EXPECT_EQ(refused(varied({4, 5}), time_major()),
            "[dynamic_rnn] inputs have shape [4, 5], expected 3 dimensions");
  EXPECT_EQ(refused(x, time_major({{4, 5}})),
            "[dynamic_rnn] sequence_lengths[1] is 5, expected 0 to 4");
  EXPECT_EQ(refused(x, time_major({{-1, 4}})),
            "[dynamic_rnn] sequence_lengths[0] is -1, expected 0 to 4");
  EXPECT_EQ(refused(x, time_major({{4}})),
            "[dynamic_rnn] sequence_lengths has 1 values, expected 2");
  EXPECT_EQ(refused(x, {}),
            "[dynamic_rnn] neither an initial state nor a dtype, expected one of them");
  const auto stacked = [&](const Cells& fw, const Cells& bw,
                           const StackBidirectionalOptions& options = {}) {
    return thrown<ArgumentError>([&] { stack_bidirectional_dynamic_rnn(fw, bw, x, options); });
  };
  const std::string at = "[stack_bidirectional_dynamic_rnn] ";
  EXPECT_EQ(stacked({}, {}), at + "0 cells_fw and 0 cells_bw, expected at least 1 of each");
  EXPECT_EQ(stacked({cell}, {}), at + "1 cells_fw and 0 cells_bw, expected at least 1 of each");
  EXPECT_EQ(stacked({cell, nullptr}, {cell, cell}), at + "cell 1 is null");
  EXPECT_EQ(stacked({cell, cell}, {cell}),
            at + "2 cells_fw and 1 cells_bw, expected as many of each");
  EXPECT_EQ(stacked({cell}, {nullptr}), at + "cell 0 is null");
  EXPECT_EQ(stacked({cell}, {cell}),
            at + "neither an initial state nor a dtype, expected one of them");
  StackBidirectionalOptions states;
  states.initial_states_fw.emplace(2);
  EXPECT_EQ(stacked({cell}, {cell}, states), at + "2 initial states, expected 1, one a layer");
  StackBidirectionalOptions backwards;
  backwards.initial_states_bw.emplace(2);
  EXPECT_EQ(stacked({cell}, {cell}, backwards), at + "2 initial states, expected 1, one a layer");
}

TEST(Loops, EveryErrorNamesTheLoop) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kGru, units(3)),
             other = make_compatible_cell(RnnMode::kGru, units(3));
  const Tensor x = varied({4, 2, 5}), flat = varied({4, 5});
  const auto both = [&](const Tensor& input, const BidirectionalOptions& options) {
    return thrown<ArgumentError>([&] { bidirectional_dynamic_rnn(*cell, *other, input, options); });
  };
  const auto stack = [&](const Tensor& input, const StackBidirectionalOptions& options) {
    return thrown<ArgumentError>(
        [&] { stack_bidirectional_dynamic_rnn({cell}, {other}, input, options); });
  };
  const std::string one = "[bidirectional_dynamic_rnn] ", all = "[stack_" + one.substr(1);
  const std::string rank = "inputs have shape [4, 5], expected 3 dimensions",
                    start = "neither an initial state nor a dtype, expected one of them",
                    length = "sequence_lengths[1] is 3, expected 0 to 2",
                    count = "sequence_lengths has 1 values, expected 4",
                    dtype =
                        "sequence_lengths is float32 of shape [2], expected int32 of 1 "
                        "dimension: one a row of the batch";
  EXPECT_EQ(both(flat, {.dtype = DType::kFloat32}), one + rank);
  EXPECT_EQ(stack(flat, {.dtype = DType::kFloat32}), all + rank);
  EXPECT_EQ(both(x, {}), one + start);
  EXPECT_EQ(both(x, {.initial_state_fw = {{varied({4, 3})}}}), one + start);
  EXPECT_EQ(both(x, {.initial_state_bw = {{varied({4, 3})}}}), one + start);
  EXPECT_EQ(both(x, {.sequence_lengths = {{2, 3, 1, 1}}, .dtype = DType::kFloat32}), one + length);
  EXPECT_EQ(stack(x, {.dtype = DType::kFloat32, .sequence_lengths = {{2, 3, 1, 1}}}), all + length);
  EXPECT_EQ(both(x, {.sequence_lengths = {{2}}, .dtype = DType::kFloat32}), one + count);
  EXPECT_EQ(stack(x, {.dtype = DType::kFloat32, .sequence_lengths = {{2}}}), all + count);
  EXPECT_EQ(both(x, {.lengths = varied({2}), .dtype = DType::kFloat32}), one + dtype);
  EXPECT_EQ(stack(x, {.dtype = DType::kFloat32, .lengths = varied({2})}), all + dtype);
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dynamic_rnn(*cell, Input({-1, 2, -1}), time_major());
            }),
            "[dynamic_rnn] inputs have shape [-1, 2, -1], expected a last dimension that is known");
  EXPECT_TRUE(own.graph.variables().empty());
}

}  // namespace
}  // namespace openrnn
