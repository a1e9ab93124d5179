// Parts of a batch: masks of the whole one, whatever draws them, and the calls that are counted.
#include "openrnn/layers.h"
#include "ops/rnn_call.h"
#include "support/expect_error.h"

namespace openrnn::testing {
namespace {

using ops::BatchPart;
using ops::PartScope;

/// Rows of [.., batch, .., C] along an axis, as a tensor.
Tensor rows_of(const Tensor& x, std::int64_t axis, std::int64_t first, std::int64_t count) {
  return ops::slice(x, {axis, first, count});
}

std::vector<double> cut(const Tensor& x, std::int64_t axis, const BatchPart& part) {
  return values_of(rows_of(x, axis, part.first_row, part.rows));
}

std::vector<BatchPart> parts_of(std::int64_t batch, std::int64_t rows) {
  std::vector<BatchPart> parts;
  for (std::int64_t first = 0; first < batch; first += rows) {
    parts.push_back({first, std::min(rows, batch - first), batch});
  }
  return parts;
}

TEST(PartScope, MasksAroundAnEngineAreThoseOfTheWholeBatch) {
  for (const RnnMode mode : kModes) {
    for (const bool time_major : {true, false}) {
      for (const std::int64_t time : {1, 4}) {
        RnnSpec spec = small_spec(mode);
        spec.training = {.dropout = 0.5,
                         .input_dropout = 0.5,
                         .output_dropout = 0.5,
                         .drop_connect = 0.25,
                         .recurrent_dropout = 0.25};
        spec.zoneout = 0.25;
        RnnCall call = rnn_call(spec, time_major, {time, 5});
        ops::DropoutState state({3, 4});
        state.set_calls(6);
        call.inputs.next_dropout = [&] { return state.next(); };
        const ops::RnnOutputs whole = call();
        EXPECT_EQ(state.calls(), 7u);
        state.set_calls(6);
        const std::uint64_t step = ops::new_step_of_parts();
        const std::int64_t axis = time_major ? 1 : 0;
        for (const BatchPart& part : parts_of(5, 2)) {
          const PartScope scope(part, step);
          RnnCall mine = call;
          mine.inputs.x = rows_of(call.inputs.x, axis, part.first_row, part.rows);
          mine.inputs.h0 = rows_of(call.inputs.h0, axis, part.first_row, part.rows);
          if (spec.has_cell()) {
            mine.inputs.c0 = rows_of(call.inputs.c0, axis, part.first_row, part.rows);
          }
          const ops::RnnOutputs out = mine();
          EXPECT_EQ(values_of(out.output), cut(whole.output, axis, part));
          EXPECT_EQ(values_of(out.h), cut(whole.h, axis, part));
          EXPECT_EQ(state.calls(), 7u) << "one call a step";
        }
      }
    }
  }
}

/// A Dropout of `whole` in parts along an axis gives the same values and gradients.
void expect_dropout_in_parts(const Shape& shape, std::int64_t axis,
                             std::optional<std::int64_t> scope_axis) {
  const Graph graph;
  layers::Dropout dropout({.rate = 0.5, .seed = 3});
  const Tensor x = random_tensor(shape, 1, 0.5, 1.0);
  const std::int64_t batch = shape[static_cast<std::size_t>(axis)];
  const Tensor whole = dropout(x, true);
  dropout.set_dropout_calls(0);
  const std::uint64_t step = ops::new_step_of_parts();
  for (const BatchPart& part : parts_of(batch, 3)) {
    const PartScope scope(part, step, scope_axis);
    GradientTape tape;
    const Tensor mine = tape.watch(rows_of(x, axis, part.first_row, part.rows));
    const Tensor y = dropout(mine, true);
    const Tensor sum = ops::reduce_sum(y);
    tape.close();
    EXPECT_EQ(values_of(y), cut(whole, axis, part));
    const std::vector<double> gradient = values_of(tape.gradient(sum, {mine})[0]);
    const std::vector<double> out = values_of(y);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(gradient[i], out[i] == 0.0 ? 0.0 : 2.0);
  }
  EXPECT_EQ(dropout.dropout_calls(), 1u);
}

TEST(PartScope, DropoutFindsTheRowsOfItsInput) {
  expect_dropout_in_parts({7, 5}, 0, 0);
  expect_dropout_in_parts({7, 5}, 0, 1);
  expect_dropout_in_parts({4, 7, 5}, 1, 1);
  expect_dropout_in_parts({7, 4, 5}, 0, 0);
  expect_dropout_in_parts({2, 7, 3, 5}, 1, 1);
  expect_dropout_in_parts({7, 2, 3, 5}, 0, 0);
  expect_dropout_in_parts({1, 1, 1}, 1, 1);
}

TEST(PartScope, DropoutFindsRowsThatWereFlattened) {
  const Graph graph;
  for (const std::int64_t axis : {0, 1}) {
    layers::Dropout dropout({.rate = 0.5, .seed = 3});
    const Shape shape = axis == 0 ? Shape{6, 4, 5} : Shape{4, 6, 5};
    const Tensor x = random_tensor(shape, 1, 0.5, 1.0);
    const Tensor whole = dropout(x, true);
    dropout.set_dropout_calls(0);
    const std::uint64_t step = ops::new_step_of_parts();
    for (const BatchPart& part : parts_of(6, 2)) {
      const PartScope scope(part, step, axis);
      const Tensor mine = rows_of(x, axis, part.first_row, part.rows);
      EXPECT_EQ(values_of(dropout(ops::reshape(mine, {8, 5}), true)), cut(whole, axis, part));
    }
  }
}

TEST(PartScope, APartOfAStepRepeatsTheCallsOfTheFirst) {
  ops::DropoutState state({1, 2});
  state.set_calls(10);
  const auto draw = [&](std::uint64_t step, const BatchPart& part) {
    const PartScope scope(part, step);
    return std::vector{state.next(), state.next()};
  };
  for (std::uint64_t before = 10; before < 14; before += 2) {
    const std::uint64_t step = ops::new_step_of_parts();
    for (const BatchPart& part : parts_of(4, 2)) {
      const std::vector<DropoutKey> keys = draw(step, part);
      EXPECT_EQ(keys[0].call, before);
      EXPECT_EQ(keys[1].call, before + 1);
      EXPECT_EQ(keys[1].first_row, part.first_row);
      EXPECT_EQ(keys[1].whole_batch, 4);
    }
    EXPECT_EQ(state.calls(), before + 2);
  }
  EXPECT_EQ(state.next().whole_batch, 0) << "outside of every part";
  EXPECT_EQ(PartScope::current(), nullptr);
}

TEST(PartScope, PartsOfDifferentNumbersOfMasksShareNoneWithTheNextStep) {
  ops::DropoutState state({1, 2});
  const auto draw = [&](std::uint64_t step, std::int64_t first, int times) {
    const PartScope scope({first, 2, 4}, step);
    std::vector<std::uint64_t> calls;
    for (int i = 0; i < times; ++i) calls.push_back(state.next().call);
    return calls;
  };
  const std::uint64_t step = ops::new_step_of_parts();
  EXPECT_EQ(draw(step, 0, 3), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(draw(step, 2, 1), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(state.calls(), 3u);
  EXPECT_EQ(draw(ops::new_step_of_parts(), 0, 1), (std::vector<std::uint64_t>{3}));
}

TEST(PartScope, WithoutAnAxisTheRowsAreThoseOfOneOfTwo) {
  expect_dropout_in_parts({7, 5}, 0, std::nullopt);
  expect_dropout_in_parts({4, 7, 5}, 1, std::nullopt);
  expect_dropout_in_parts({7, 4, 5}, 0, std::nullopt);
  expect_dropout_in_parts({1, 1, 1}, 0, std::nullopt);
  const Graph graph;
  const PartScope scope({3, 3, 6}, ops::new_step_of_parts());
  layers::Dropout dropout({.rate = 0.5, .seed = 3});
  const auto drop = [&](const Shape& shape) {
    return [&, shape] { dropout(random_tensor(shape, 1, 0.5, 1.0), true); };
  };
  expect_error<ArgumentError>(drop({3, 3, 2}),
                              "[dropout] x has shape [3, 3, 2] in a part of 3 rows of a batch, "
                              "expected them along one of the axes 0 and 1, not both: another "
                              "number of parts has other rows");
  expect_error<ArgumentError>(drop({12, 5}),
                              "[dropout] x has shape [12, 5] in a part of 3 rows of a batch, "
                              "expected them along one of the axes 0 and 1, and more after it");
  EXPECT_EQ(dropout.dropout_calls(), 0u) << "a refused call draws nothing";
}

TEST(PartScope, KeysOfTheCallersOwnAreTheirs) {
  const PartScope scope({2, 2, 4}, ops::new_step_of_parts());
  const Tensor x = random_tensor({7, 3, 2}, 1, 0.5, 1.0);
  const DropoutKey key{.seed = 3, .call = 5};
  EXPECT_EQ(values_of(ops::next_dropout(x, 0.5, [&] { return key; })),
            values_of(ops::dropout(x, 0.5, key)))
      << "whatever the shape";
  const DropoutKey part{.seed = 3, .call = 5, .first_row = 2, .whole_batch = 9};
  EXPECT_EQ(values_of(ops::next_dropout(x, 0.5, [&] { return part; })),
            values_of(ops::dropout(x, 0.5, part)));
}

TEST(PartScope, RecordedCallsDrawMasksOfTheWholeBatch) {
  const Graph graph;
  const Tensor x = Input({-1, 4, 5}, DType::kFloat64);
  const auto made = [&] {
    return Model({x}, {ops::next_dropout(x, 0.5, [] { return DropoutKey{.seed = 3}; })});
  };
  const Tensor given = random_tensor({7, 4, 5}, 1, 0.5, 1.0);
  Model whole = made(), parts = made();
  for (int call = 0; call < 2; ++call) {
    const std::vector<double> expected = values_of(whole({given})[0]);
    const std::uint64_t step = ops::new_step_of_parts();
    std::vector<double> found;
    for (const BatchPart& part : parts_of(7, 3)) {
      const PartScope scope(part, step);
      const Tensor y = parts({rows_of(given, 0, part.first_row, part.rows)})[0];
      const std::vector<double> mine = values_of(y);
      found.insert(found.end(), mine.begin(), mine.end());
    }
    EXPECT_EQ(found, expected);
  }
  EXPECT_NE(values_of(whole({given})[0]), values_of(whole({given})[0])) << "each call draws";
}

// A function keeps the key that it was recorded with, and a part of a batch its rows of the masks.
TEST(PartScope, RecordedFunctionsHaveMasksOfTheWholeBatch) {
  const Graph graph;
  const RnnSpec spec{.mode = RnnMode::kGru,
                     .num_layers = 2,
                     .num_units = 6,
                     .input_size = 3,
                     .dtype = DType::kFloat64,
                     .training = {.dropout = 0.5, .seed = 3}};
  const Tensor params = random_tensor({params_size(spec)}, 1);
  const Tensor x = Input({4, -1, 3}, DType::kFloat64), h = Input({2, -1, 6}, DType::kFloat64);
  Model model({x, h}, {ops::cudnn_gru(x, h, params, {.network = spec}).output});
  const Tensor xs = random_tensor({4, 7, 3}, 2), hs = random_tensor({2, 7, 6}, 3);
  const Tensor whole = model({xs, hs})[0];
  EXPECT_NE(values_of(model({xs, hs}, false)[0]), values_of(whole));
  for (int step = 0; step < 2; ++step) {
    const std::uint64_t number = ops::new_step_of_parts();
    for (const BatchPart& part : parts_of(7, 3)) {
      const PartScope scope(part, number);
      const Tensor y = model({rows_of(xs, 1, part.first_row, part.rows),
                              rows_of(hs, 1, part.first_row, part.rows)})[0];
      EXPECT_EQ(values_of(y), cut(whole, 1, part)) << part.first_row;
    }
  }
}

TEST(PartScope, RefusesWhatHasNoRowsOfIt) {
  const Graph graph;
  const auto scoped = [](const BatchPart& part, std::int64_t axis = 1) {
    return [=] { const PartScope scope(part, 1, axis); };
  };
  expect_error<ArgumentError>(scoped({2, 0, 4}),
                              "[BatchPart] 0 rows from row 2 of a batch of 4, expected at least "
                              "one, and all of them in it");
  EXPECT_THROW(scoped({3, 2, 4})(), ArgumentError);
  EXPECT_THROW(scoped({-1, 2, 4})(), ArgumentError);
  expect_error<ArgumentError>(scoped({0, 2, 4}, 2), "[PartScope] batch_axis is 2, expected 0 or 1");

  const PartScope scope({2, 2, 4}, ops::new_step_of_parts(), 1);
  layers::Dropout dropout({.rate = 0.5, .seed = 3});
  const auto drop = [&](const Shape& shape) {
    return [&, shape] { dropout(random_tensor(shape, 1, 0.5, 1.0), true); };
  };
  expect_error<ArgumentError>(drop({5, 3, 2}),
                              "[dropout] x has shape [5, 3, 2] in a part of 2 rows of a batch, "
                              "expected them along axis 1 and more after it");
  EXPECT_THROW(drop({3, 2})(), ArgumentError);
  EXPECT_THROW(drop({2})(), ArgumentError);
  const DropoutKey of_part{.seed = 1, .first_row = 0, .whole_batch = 4};
  expect_error<ArgumentError>([&] { ops::dropout(random_tensor({4}, 1), 0.5, of_part); },
                              "[dropout] x has shape [4], expected the batch along axis 0, and "
                              "more after it");
  EXPECT_EQ(dropout.dropout_calls(), 0u) << "a refused call draws nothing";

  RnnCall call = rnn_call(small_spec(RnnMode::kLstm), true, {4, 3});
  ops::DropoutState state({1, 2});
  call.inputs.next_dropout = [&] { return state.next(); };
  expect_error<ArgumentError>([&] { call(); },
                              "[rnn] a batch of 3 in a part of 2 rows of a batch, expected these: "
                              "masks are of their numbers");
  call = rnn_call(small_spec(RnnMode::kLstm), true, {4, 2});
  call.inputs.next_dropout = [&] { return state.next(); };
  for (std::vector<bool> ops::StepFlags::*const given :
       {&ops::StepFlags::reset, &ops::StepFlags::mask}) {
    call.inputs.flags = {};
    (call.inputs.flags.*given).assign(8, true);
    expect_error<UnsupportedError>(
        [&] { call(); },
        "[rnn] mask or reset with masks of dropout in a part of a batch, expected "
        "sequence_lengths, or the whole batch");
  }
  EXPECT_EQ(state.calls(), 0u);
  call.spec.training = {};
  EXPECT_NO_THROW(call()) << "nothing is drawn";
}

// Segments that steps are cut into are more than the rows of the part.
TEST(PartScope, TakesMaskAndResetWhereNothingIsDrawn) {
  const Graph graph;
  RnnSpec spec = small_spec(RnnMode::kLstm);
  for (const bool training : {true, false}) {
    spec.training.dropout = training ? 0.0 : 0.5;
    RnnCall call = rnn_call(spec, true, {4, 2});
    call.inputs.training = training;
    call.inputs.flags = {.mask = {true, true, true, false, true, true, false, true},
                         .reset = {true, false, true, true, false, true, true, true}};
    const ops::RnnOutputs whole = call();
    ops::DropoutState state({1, 2});
    call.inputs.next_dropout = [&] { return state.next(); };
    const PartScope scope({2, 2, 4}, ops::new_step_of_parts(), 1);
    const ops::RnnOutputs out = call();
    EXPECT_EQ(values_of(out.output), values_of(whole.output)) << training;
    EXPECT_EQ(values_of(out.h), values_of(whole.h)) << training;
  }
}

}  // namespace
}  // namespace openrnn::testing
