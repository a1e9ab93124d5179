// Loops of TensorFlow's cells that run as one call, against the same cells step by step.
#include <cmath>

#include "cells/support.h"
#include "openrnn/cells_layer_norm.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using namespace testing;
using Cells = std::vector<std::shared_ptr<RnnCell>>;

constexpr DType kDouble = DType::kFloat64;

// Every class and option, and stacks.
Cells cells_of(DType dtype) {
  const auto lstm = [dtype](LSTMCellOptions options) {
    options.dtype = dtype;
    return std::make_shared<LSTMCell>(std::move(options));
  };
  const auto gru = [dtype](std::int64_t units) {
    return std::make_shared<GRUCell>(GRUCellOptions{.num_units = units, .dtype = dtype});
  };
  const auto normalized = [dtype](bool layer_norm) {
    return std::make_shared<LayerNormBasicLSTMCell>(LayerNormBasicLSTMCellOptions{
        .num_units = 5, .forget_bias = 0.5, .layer_norm = layer_norm, .dtype = dtype});
  };
  const auto stack = [](Cells cells) { return std::make_shared<MultiRNNCell>(std::move(cells)); };
  return {std::make_shared<BasicLSTMCell>(
              BasicLSTMCellOptions{.num_units = 3, .forget_bias = 0.25, .dtype = dtype}),
          lstm({.num_units = 7}),
          lstm({.num_units = 5, .use_peepholes = true, .cell_clip = 0.3}),
          lstm({.num_units = 5,
                .use_peepholes = true,
                .cell_clip = 0.4,
                .num_proj = 2,
                .proj_clip = 0.2,
                .forget_bias = -0.5}),
          gru(1),
          gru(7),
          normalized(true),
          normalized(false),
          stack({lstm({.num_units = 4, .num_proj = 3}), gru(5), normalized(true)})};
}

// The same cells as a loop: what is overridden is called at every step.
void override_steps(RnnCell& cell) {
  cell.set_overrides({.step = [&cell](const Tensor& x, const CellState& state) {
    return cell.run_class(x, state);
  }});
}

struct Case {
  std::optional<std::vector<std::int32_t>> lengths;
  bool time_major, starts;
};

std::vector<Tensor> results_of(RnnCell& cell, const Tensor& x, const CellState& start,
                               const Case& c) {
  DynamicRnnOptions options{.dtype = x.dtype(), .time_major = c.time_major};
  if (c.lengths) options.sequence_lengths = *c.lengths;
  if (c.starts) options.initial_state = start;
  DynamicRnnResult found = dynamic_rnn(cell, x, options);
  found.state.insert(found.state.begin(), found.outputs);
  return found.state;
}

// Values, then gradients of all variables, x and the states.
std::vector<Array> everything(RnnCell& cell, const Case& c, DType dtype) {
  const GradientTape tape;
  const Tensor x = tape.watch(varied(c.time_major ? Shape{6, 3, 4} : Shape{3, 6, 4}, 1, dtype));
  CellState start = cell.zero_state(3, dtype);
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = tape.watch(varied(start[i].shape(), 10 + i, dtype));
  }
  const std::vector<Tensor> results = results_of(cell, x, start, c);
  std::vector<Array> all;
  Tensor sum;
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(results[i].to_host());
    const Tensor weighted = ops::multiply(results[i], varied(results[i].shape(), 30 + i, dtype));
    sum = sum.empty() ? ops::reduce_sum(weighted) : ops::add(sum, ops::reduce_sum(weighted));
  }
  std::vector<Tensor> sources{x};
  if (c.starts) sources.insert(sources.end(), start.begin(), start.end());
  for (const auto& part :
       {tape.gradient(sum, cell.trainable_weights()), tape.gradient(sum, sources)}) {
    for (const DeviceArray& gradient : part) all.push_back(gradient.to_host());
  }
  return all;
}

void expect_same(const std::vector<Array>& found, const std::vector<Array>& expected, double eps) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].shape(), expected[i].shape()) << i;
    for (std::int64_t k = 0; k < found[i].size(); ++k) {
      const double wanted = element(expected[i].view(), k);
      ASSERT_NEAR(element(found[i].view(), k), wanted, eps * (1.0 + std::abs(wanted))) << i;
    }
  }
}

class Fused : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Fused, IsTheLoopOfSteps) {
  for (const DType dtype : {kDouble, DType::kFloat32}) {
    const OwnGraph own;
    const std::shared_ptr<RnnCell> held = cells_of(dtype)[GetParam()];
    RnnCell& cell = *held;
    for (const Case& c :
         {Case{{}, true, true}, Case{{{6, 0, 4}}, true, true}, Case{{{1, 6, 2}}, false, false}}) {
      cell.set_overrides({});
      const std::vector<Array> found = everything(cell, c, dtype);
      override_steps(cell);
      expect_same(found, everything(cell, c, dtype), dtype == kDouble ? 1e-12 : 2e-5);
    }
  }
}

TEST_P(Fused, MakesTheSameVariables) {
  std::vector<std::string> names[2];
  for (const bool steps : {false, true}) {
    const OwnGraph own;
    const std::shared_ptr<RnnCell> cell = cells_of(kDouble)[GetParam()];
    if (steps) override_steps(*cell);
    dynamic_rnn(*cell, varied({3, 2, 4}, 1, kDouble), {.dtype = kDouble});
    dynamic_rnn(*cell, varied({2, 2, 4}, 1, kDouble), {.dtype = kDouble});
    names[steps] = names_of(own.graph);
  }
  EXPECT_EQ(names[0], names[1]);
  EXPECT_FALSE(names[0].empty());
}

INSTANTIATE_TEST_SUITE_P(Cells, Fused, ::testing::Range<std::size_t>(0, 9));

template <class Cell>
struct Louder final : Cell {
  using Cell::Cell;
  CellResult step(const Tensor& inputs, const CellState& state) override {
    CellResult result = Cell::step(inputs, state);
    result.output = ops::scale(result.output, 2.0);
    return result;
  }
};

TEST(Fused, LeavesSubclassesOfAStackToTheirSteps) {
  const OwnGraph own;
  const auto cells = [] {
    return std::vector<std::shared_ptr<RnnCell>>{
        std::make_shared<LSTMCell>(LSTMCellOptions{.num_units = 3, .dtype = kDouble, .seed = 1}),
        std::make_shared<GRUCell>(GRUCellOptions{.num_units = 2, .dtype = kDouble, .seed = 2})};
  };
  Louder<MultiRNNCell> louder(cells());
  const Tensor x = varied({4, 2, 3}, 1, kDouble);
  const DynamicRnnResult found = dynamic_rnn(louder, x, {.dtype = kDouble, .time_major = true});
  const Tensor last = ops::slice(found.outputs, {.axis = 0, .begin = 3, .size = 1});
  EXPECT_TRUE(same(ops::reshape(last, {2, 2}), ops::scale(found.state[2], 2.0)));
}

TEST(Fused, LeavesSubclassesAndOtherActivationsToTheirSteps) {
  const OwnGraph own;
  Louder<LSTMCell> louder({.num_units = 3, .dtype = kDouble});
  EXPECT_FALSE(louder.is_network());
  const Tensor x = varied({4, 2, 3}, 1, kDouble);
  const DynamicRnnResult found = dynamic_rnn(louder, x, {.dtype = kDouble, .time_major = true});
  const Tensor last = ops::slice(found.outputs, {.axis = 0, .begin = 3, .size = 1});
  EXPECT_TRUE(same(ops::reshape(last, {2, 3}), ops::scale(found.state[1], 2.0)));
  EXPECT_FALSE(LSTMCell({.num_units = 3, .activation = ops::relu}).is_network());
  EXPECT_FALSE(LSTMCell({.num_units = 3, .num_proj = 3}).is_network());
  EXPECT_FALSE(LSTMCell({.num_units = 3, .cell_clip = 0.0}).is_network());
  EXPECT_FALSE(LSTMCell({.num_units = 3, .cell_clip = HUGE_VAL}).is_network());
  EXPECT_FALSE(LSTMCell({.num_units = 3, .forget_bias = HUGE_VAL}).is_network());
  EXPECT_FALSE(LayerNormBasicLSTMCell({.num_units = 3, .forget_bias = HUGE_VAL}).is_network());
  EXPECT_FALSE(GRUCell({.num_units = 3, .activation = ops::relu}).is_network());
  EXPECT_FALSE(LayerNormBasicLSTMCell({.num_units = 3, .dropout_keep_prob = 0.5}).is_network());
  EXPECT_FALSE(CudnnCompatibleLSTMCell(units(3)).is_network());
}

TEST(Fused, RefusesWhatALoopRefuses) {
  const OwnGraph own;
  LSTMCell cell({.num_units = 3});
  const auto start = [](Shape c, Shape h) { return CellState{varied(c), varied(h)}; };
  const auto refused = [&](CellState state) {
    return thrown<ArgumentError>([&] {
      dynamic_rnn(cell, varied({2, 4, 5}), {.initial_state = std::move(state)});
    });
  };
  EXPECT_EQ(refused(start({2, 3}, {2, 4})),
            "[LSTMCell] state[1] has shape [2, 4], expected [2, 3]");
  EXPECT_EQ(refused({varied({2, 3})}), "[LSTMCell] a state of 1 tensors, expected 2");
  EXPECT_EQ(refused({varied({2, 3}), varied({2, 3}, 1, kDouble)}),
            "[LSTMCell] a state is float64, expected float32");
  EXPECT_TRUE(own.graph.variables().empty());
}

}  // namespace
}  // namespace openrnn
