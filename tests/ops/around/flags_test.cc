// Masked steps and resets, against a loop over steps and against sequences cut by hand.
#include <algorithm>
#include <array>

#include "base/message.h"
#include "ops/check_gradient.h"
#include "ops/segments/cut.h"
#include "ops/small_spec.h"
#include "support/expect_error.h"

namespace openrnn::testing {
namespace {

using Flags = std::vector<bool>;

constexpr std::int64_t kTime = 6, kBatch = 3;
// By time and row: holes, left padding, a row that is masked at its end; resets at masked steps, at
// the first step, and twice in a row.
const Flags kMask = {true, false, true, false, false, true,  true, true, true,
                     true, false, true, false, true,  false, true, true, false};
const Flags kReset = {false, false, true, false, true,  false, true,  false, false,
                      true,  false, true, false, false, false, false, true,  true};

struct Flagged {
  RnnSpec spec;
  ops::RnnInputs in;
};

Flagged make_call(RnnMode mode, Direction direction, std::int64_t layers = 2) {
  Flagged call{small_spec(mode), {}};
  call.spec.num_layers = layers;
  call.spec.direction = direction;
  call.spec.training.dropout = 0.0;
  call.in.x = random_tensor({kTime, kBatch, call.spec.input_size}, 1, -0.9, 0.9);
  call.in.h0 = random_tensor(call.spec.h_shape(kBatch), 2, -0.9, 0.9);
  if (call.spec.has_cell()) call.in.c0 = random_tensor(call.spec.c_shape(kBatch), 3, -0.9, 0.9);
  call.in.params = random_tensor({params_size(call.spec)}, 4, -0.7, 0.8);
  return call;
}

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<double> left = values_of(a), right = values_of(b);
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], 1e-14) << i;
}

// By row: a's where `choose`, else b's; both [N, B, ..].
Tensor pick(const Flags& choose, const Tensor& a, const Tensor& b) {
  return ops::transpose_leading(
      ops::select_rows(choose, ops::transpose_leading(a), ops::transpose_leading(b)));
}

Flags at_step(const Flags& flags, std::int64_t t, bool otherwise) {
  if (flags.empty()) return Flags(kBatch, otherwise);
  return {flags.begin() + t * kBatch, flags.begin() + (t + 1) * kBatch};
}

// A state put back where `reset`.
Tensor put_back(const Flagged& call, const Flags& reset, const Tensor& initial, const Tensor& now) {
  return pick(reset, call.in.flags.reset_to_initial ? initial : ops::scale(initial, 0.0), now);
}

// One step at a time, every row of one layer: what is masked keeps its state.
ops::RnnOutputs step_by_step(const Flagged& call) {
  const ops::StepFlags& flags = call.in.flags;
  ops::RnnOutputs now{.h = call.in.h0, .c = call.in.c0};
  const Tensor nothing = ops::scale(call.in.h0, 0.0);
  Tensor last = nothing;
  std::vector<Tensor> outputs;
  for (std::int64_t t = 0; t < kTime; ++t) {
    const Flags mask = at_step(flags.mask, t, true), reset = at_step(flags.reset, t, false);
    last = pick(reset, nothing, last);
    ops::RnnInputs step = call.in;
    step.flags = {};
    step.x = ops::slice(call.in.x, {0, t, 1});
    now.h = step.h0 = put_back(call, reset, call.in.h0, now.h);
    if (call.spec.has_cell()) now.c = step.c0 = put_back(call, reset, call.in.c0, now.c);
    const ops::RnnOutputs made = ops::rnn(call.spec, step, nullptr);
    now.h = pick(mask, made.h, now.h);
    if (call.spec.has_cell()) now.c = pick(mask, made.c, now.c);
    last = pick(mask, made.output, last);
    outputs.push_back(pick(mask, made.output, flags.zero_output_for_mask ? nothing : last));
  }
  now.output = ops::concat(outputs, 0);
  return now;
}

void expect_loop(RnnMode mode, const ops::StepFlags& flags) {
  Flagged call = make_call(mode, Direction::kUnidirectional, 1);
  call.in.flags = flags;
  const ops::RnnOutputs found = ops::rnn(call.spec, call.in, nullptr), wanted = step_by_step(call);
  expect_near(found.output, wanted.output);
  expect_near(found.h, wanted.h);
  if (call.spec.has_cell()) expect_near(found.c, wanted.c);
}

TEST(StepFlags, AreALoopOverSteps) {
  const Flags& mask = kMask;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh}) {
    for (const bool zero : {true, false}) {
      for (const bool initial : {true, false}) {
        SCOPED_TRACE(message(to_string(mode), " ", zero, " ", initial));
        expect_loop(mode, {mask, zero, {}, initial});
        expect_loop(mode, {{}, zero, kReset, initial});
        expect_loop(mode, {mask, zero, kReset, initial});
      }
    }
  }
}

// An output may be repeated at a step that is masked; a cell is a state, and there is none.
TEST(StepFlags, CellsOfMaskedStepsAreZero) {
  for (const bool zero : {true, false}) {
    for (const Flags& reset : {Flags{}, kReset}) {
      Flagged call = make_call(RnnMode::kLstm, Direction::kBidirectional);
      call.in.every = true;
      call.in.flags = {kMask, zero, reset, false};
      const ops::RnnOutputs out = ops::rnn(call.spec, call.in, nullptr);
      ASSERT_EQ(out.layer_cells.size(), 2U);
      ASSERT_EQ(out.layer_outputs.size(), 2U);
      EXPECT_EQ(values_of(out.layer_outputs[1]), values_of(out.output));
      for (const Tensor& cells : out.layer_cells) {
        const std::vector<double> values = values_of(cells);
        const std::size_t width = values.size() / kMask.size();
        for (std::size_t i = 0; i < values.size(); ++i) {
          EXPECT_EQ(values[i] != 0.0, kMask[i / width]) << i;
        }
      }
    }
  }
}

// One long sequence beside many short ones is computed apart from them, with masks of its own.
TEST(StepFlags, GroupsOfSequencesHaveMasksOfTheirOwn) {
  constexpr std::int64_t kSteps = 1500, kUnits = 64;
  const RnnSpec spec{.mode = RnnMode::kRnnRelu,
                     .num_layers = 2,
                     .num_units = kUnits,
                     .input_size = kUnits,
                     .dtype = DType::kFloat64,
                     .training = {.dropout = 0.5}};
  // Both layers hand on what they are given, so that the output is the mask between them.
  Array params(DType::kFloat64, {params_size(spec)});
  const ParamsLayout layout(spec);
  for (const std::int64_t layer : {0, 1}) {
    const ParamRegion& w = layout.weight(layer, 0, ParamRole::kInputWeight, 0);
    for (std::int64_t i = 0; i < kUnits; ++i) {
      params.as<double>()[static_cast<std::size_t>(w.offset + i * (kUnits + 1))] = 1.0;
    }
  }
  ops::RnnInputs in;
  in.x = ops::full_like(random_tensor({kSteps, 2, kUnits}, 1), 1.0);
  in.params = Tensor(params.view());
  in.dropout = {.seed = 5, .call = 2};
  in.flags.reset.assign(static_cast<std::size_t>(2 * kSteps), false);
  for (std::size_t t = 0; t < kSteps; t += 2) in.flags.reset[2 * t + 1] = true;
  const ops::Segments segments(in, kSteps, 2);
  ASSERT_EQ(segments.groups(), 2U);
  // Of row 0, and of eight short sequences of row 1: two steps.
  const auto masks = [&] {
    const std::vector<double> y = values_of(ops::rnn(spec, in, nullptr).output);
    std::vector<std::vector<double>> found;
    for (std::size_t n = 0; n < 9; ++n) {
      const std::size_t row = n > 0 ? 1 : 0, first = n > 0 ? 2 * (n - 1) : 0;
      std::vector<double>& mask = found.emplace_back();
      for (const std::size_t t : {first, first + 1}) {
        const auto at = y.begin() + static_cast<std::ptrdiff_t>((2 * t + row) * kUnits);
        mask.insert(mask.end(), at, at + kUnits);
      }
    }
    return found;
  };
  const auto first = masks();
  for (const std::vector<double>& mask : first) {
    EXPECT_TRUE(std::ranges::all_of(mask, [](double v) { return v == 0.0 || v == 2.0; }));
    EXPECT_EQ(std::ranges::count(first, mask), 1);
  }
  EXPECT_EQ(masks(), first);
  in.next_dropout = [key = in.dropout] { return key; };
  EXPECT_EQ(masks(), first) << "however the key comes";
}

// Step t of row 0.
Tensor step_of(const Tensor& x, std::int64_t t) {
  return ops::slice(ops::slice(x, {0, t, 1}), {1, 0, 1});
}

// Two steps of row 0 as a sequence of its own.
ops::RnnOutputs two_steps(const Flagged& call, std::int64_t first, std::int64_t second,
                          const Tensor& h0) {
  ops::RnnInputs in = call.in;
  in.flags = {};
  in.x = ops::concat({step_of(call.in.x, first), step_of(call.in.x, second)}, 0);
  in.h0 = h0;
  return ops::rnn(call.spec, in, nullptr);
}

// Row 0 computes steps 0 and 2, is reset, and computes 3 and 5. A masked step keeps the last output
// of each direction.
TEST(StepFlags, CutBothDirections) {
  Flagged call = make_call(RnnMode::kGru, Direction::kBidirectional);
  Flags mask(kTime * kBatch, true), reset(kTime * kBatch, false);
  mask[1 * kBatch] = mask[4 * kBatch] = false;
  reset[3 * kBatch] = true;
  call.in.flags = {mask, false, reset, false};
  const ops::RnnOutputs found = ops::rnn(call.spec, call.in, nullptr);
  const ops::RnnOutputs before = two_steps(call, 0, 2, ops::slice(call.in.h0, {1, 0, 1}));
  const ops::RnnOutputs after = two_steps(call, 3, 5, {});
  const std::int64_t width = call.spec.hidden_size();
  const auto expect_step = [&](std::int64_t t, const ops::RnnOutputs& from, std::int64_t forward,
                               std::int64_t backward) {
    const auto half = [&](const Tensor& y, std::int64_t at, std::int64_t begin) {
      return ops::slice(step_of(y, at), {2, begin, width});
    };
    expect_near(half(found.output, t, 0), half(from.output, forward, 0));
    expect_near(half(found.output, t, width), half(from.output, backward, width));
  };
  expect_step(0, before, 0, 0);
  expect_step(1, before, 0, 1);
  expect_step(2, before, 1, 1);
  expect_step(3, after, 0, 0);
  expect_step(4, after, 0, 1);
  expect_step(5, after, 1, 1);
  expect_near(ops::slice(found.h, {1, 0, 1}), after.h);
}

TEST(StepFlags, HaveGradientsOfEveryInput) {
  const Flags& mask = kMask;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const bool zero : {true, false}) {
      Flagged call = make_call(mode, Direction::kBidirectional, 1);
      call.in.flags = {mask, zero, kReset, zero};
      call.in.sequence_lengths = {{5, 6, 4}};
      std::vector<Tensor> sources{call.in.x, call.in.params, call.in.h0};
      if (call.spec.has_cell()) sources.push_back(call.in.c0);
      const auto function = [&](const std::vector<Tensor>& given) {
        ops::RnnInputs in = call.in;
        in.x = given[0];
        in.params = given[1];
        in.h0 = given[2];
        if (call.spec.has_cell()) in.c0 = given[3];
        const ops::RnnOutputs out = ops::rnn(call.spec, in, nullptr);
        std::vector<Tensor> outputs{out.output, out.h};
        if (call.spec.has_cell()) outputs.push_back(out.c);
        return outputs;
      };
      check_gradient(function, sources);
    }
  }
}

TEST(StepFlags, AreTheSameBatchMajor) {
  const auto by_row = [](const Flags& flags) {
    Flags transposed;
    for (std::int64_t i = 0; i < kTime * kBatch; ++i) {
      transposed.push_back(flags[static_cast<std::size_t>(i % kTime * kBatch + i / kTime)]);
    }
    return transposed;
  };
  Flagged call = make_call(RnnMode::kLstm, Direction::kBidirectional);
  call.in.flags = {kMask, false, kReset, false};
  Flagged other = call;
  other.in.time_major = false;
  other.in.flags.mask = by_row(call.in.flags.mask);
  other.in.flags.reset = by_row(kReset);
  other.in.x = ops::transpose_leading(call.in.x);
  other.in.h0 = ops::transpose_leading(call.in.h0);
  other.in.c0 = ops::transpose_leading(call.in.c0);
  const ops::RnnOutputs found = ops::rnn(other.spec, other.in, nullptr);
  const ops::RnnOutputs wanted = ops::rnn(call.spec, call.in, nullptr);
  expect_near(ops::transpose_leading(found.output), wanted.output);
  expect_near(ops::transpose_leading(found.h), wanted.h);
  expect_near(ops::transpose_leading(found.c), wanted.c);
  EXPECT_EQ(found.h.state_layout(), StateLayout::kBatchMajor);
}

TEST(StepFlags, OfPaddingAreLengths) {
  Flagged call = make_call(RnnMode::kLstm, Direction::kBidirectional);
  const std::vector<std::int32_t> lengths = {4, 0, 6};
  for (std::int64_t i = 0; i < kTime * kBatch; ++i) {
    call.in.flags.mask.push_back(i / kBatch < lengths[static_cast<std::size_t>(i % kBatch)]);
  }
  call.in.every = true;
  const ops::RnnOutputs found = ops::rnn(call.spec, call.in, nullptr);
  call.in.flags = {};
  call.in.sequence_lengths = lengths;
  const ops::RnnOutputs wanted = ops::rnn(call.spec, call.in, nullptr);
  EXPECT_EQ(values_of(found.output), values_of(wanted.output));
  EXPECT_EQ(values_of(found.h), values_of(wanted.h));
  EXPECT_EQ(values_of(found.c), values_of(wanted.c));
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(values_of(found.layer_outputs[layer]), values_of(wanted.layer_outputs[layer]));
    EXPECT_EQ(values_of(found.layer_cells[layer]), values_of(wanted.layer_cells[layer]));
  }
}

// Row 0 is one long sequence, row 1 begins anew at every step.
Flagged uneven_call(std::int64_t time) {
  Flagged call = make_call(RnnMode::kLstm, Direction::kBidirectional);
  call.in.x = random_tensor({time, 2, call.spec.input_size}, 1, -0.9, 0.9);
  call.in.h0 = random_tensor(call.spec.h_shape(2), 2, -0.9, 0.9);
  call.in.c0 = random_tensor(call.spec.c_shape(2), 3, -0.9, 0.9);
  for (std::int64_t t = 0; t < time; ++t) {
    call.in.flags.reset.insert(call.in.flags.reset.end(), {false, true});
  }
  return call;
}

TEST(StepFlags, GroupsOfLikeLengthAreLittlePadded) {
  const std::int64_t time = 2000;
  const Flagged call = uneven_call(time);
  const ops::Segments segments(call.in, time, 2);
  std::int64_t rows = 0, steps = 0;
  for (std::size_t g = 0; g < segments.groups(); ++g) {
    rows += segments.time(g) * segments.count(g);
    for (const std::int32_t length : segments.lengths(g)) steps += length;
  }
  EXPECT_EQ(steps, 2 * time);
  EXPECT_LE(rows, 4 * time);
  EXPECT_EQ(segments.groups(), 2u);
}

// As row 0 and each step of row 1 by themselves, with their gradients.
TEST(StepFlags, OfUnevenRowsAreTheirSequences) {
  const std::int64_t time = 60;
  Flagged call = uneven_call(time);
  ASSERT_GT(ops::Segments(call.in, time, 2).groups(), 1u);
  const GradientTape tape;
  call.in.params = tape.watch(call.in.params);
  call.in.x = tape.watch(call.in.x);
  const ops::RnnOutputs found = ops::rnn(call.spec, call.in, nullptr);
  const auto column = [](const Tensor& all, std::int64_t b) {
    return ops::slice(all, {.axis = 1, .begin = b, .size = 1});
  };
  ops::RnnInputs one = call.in;
  one.flags = {};
  one.x = column(call.in.x, 0);
  one.h0 = column(call.in.h0, 0);
  one.c0 = column(call.in.c0, 0);
  const ops::RnnOutputs first = ops::rnn(call.spec, one, nullptr);
  one.x = ops::reshape(column(call.in.x, 1), {1, time, call.spec.input_size});
  one.h0 = one.c0 = Tensor();
  const ops::RnnOutputs second = ops::rnn(call.spec, one, nullptr);
  const Tensor steps = ops::reshape(second.output, {time, 1, second.output.shape()[2]});
  const Tensor expected = ops::concat({first.output, steps}, 1);
  expect_near(found.output, expected);
  const auto last = [&](const Tensor& a, const Tensor& b) {
    return ops::concat({a, ops::slice(b, {.axis = 1, .begin = time - 1, .size = 1})}, 1);
  };
  expect_near(found.h, last(first.h, second.h));
  expect_near(found.c, last(first.c, second.c));
  const std::vector<Tensor> sources{call.in.x, call.in.params};
  const Tensor weights = random_tensor(expected.shape(), 5, -1.0, 1.0);
  const auto gradients = [&](const Tensor& output) {
    return tape.gradient(ops::reduce_sum(ops::multiply(weights, output)), sources);
  };
  const auto mine = gradients(found.output), theirs = gradients(expected);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<double> left = values_of(mine[i]), right = values_of(theirs[i]);
    for (std::size_t k = 0; k < left.size(); ++k) ASSERT_NEAR(left[k], right[k], 1e-12) << i;
  }
}

TEST(StepFlags, GroupsDrawOneKeyAndMasksOfTheirOwn) {
  Flagged call = uneven_call(60);
  call.spec.training.dropout = 0.5;
  int drawn = 0;
  call.in.next_dropout = [&drawn] {
    return DropoutKey{.seed = 3, .call = static_cast<std::uint64_t>(drawn++)};
  };
  const std::vector<double> first = values_of(ops::rnn(call.spec, call.in, nullptr).output);
  EXPECT_EQ(drawn, 1);
  call.in.next_dropout = {};
  call.in.dropout = {.seed = 3, .call = 0};
  EXPECT_EQ(values_of(ops::rnn(call.spec, call.in, nullptr).output), first);
}

// The sequences that resets cut rows of 6, 3 and 5 steps into, by row and time: row, first
// step, end.
constexpr std::array<std::array<std::int64_t, 3>, 8> kCut = {
    {{0, 0, 2}, {0, 2, 3}, {0, 3, 6}, {1, 0, 1}, {1, 1, 3}, {2, 0, 1}, {2, 1, 3}, {2, 3, 5}}};

Flagged cut_call() {
  Flagged call = make_call(RnnMode::kLstm, Direction::kBidirectional);
  call.in.sequence_lengths = {{6, 3, 5}};
  call.in.flags.reset.assign(kTime * kBatch, false);
  for (std::size_t s = 0; s < kCut.size(); ++s) {
    const auto& [row, first, last] = kCut[s];
    if (first > 0) call.in.flags.reset[static_cast<std::size_t>(first * kBatch + row)] = true;
  }
  return call;
}

TEST(StepFlags, SequencesOfOneGroupAreByRowAndTime) {
  const Flagged call = cut_call();
  const ops::Segments segments(call.in, kTime, kBatch);
  ASSERT_EQ(segments.groups(), 1u);
  EXPECT_EQ(segments.lengths(0), (std::vector<std::int32_t>{2, 1, 3, 1, 2, 1, 2, 2}));
  EXPECT_EQ(segments.first_states(0, 9), (std::vector<std::int32_t>{0, 9, 9, 1, 9, 2, 9, 9}));
  EXPECT_EQ(segments.last_of_rows(), (std::vector<std::int32_t>{2, 4, 7}));
}

// The masks between layers are those of a batch of the sequences, in the order of rows and time.
TEST(StepFlags, DropoutIsThatOfTheSequencesInOrder) {
  Flagged call = cut_call();
  call.spec.training.dropout = 0.4;
  call.in.dropout = {.seed = 5, .call = 2};
  const ops::RnnOutputs found = ops::rnn(call.spec, call.in, nullptr);
  Flagged batch = call;
  batch.in.flags = {};
  batch.in.sequence_lengths.emplace();
  std::vector<Tensor> x, h, c;
  for (std::size_t s = 0; s < kCut.size(); ++s) {
    const auto& [row, first, last] = kCut[s];
    const Tensor own = ops::slice(call.in.x, {1, row, 1});
    const Tensor padding = ops::slice(call.in.x, {1, row, 1});
    x.push_back(ops::slice(ops::concat({ops::slice(own, {0, first, last - first}), padding}, 0),
                           {0, 0, kTime}));
    const double kept = first == 0 ? 1.0 : 0.0;
    h.push_back(ops::scale(ops::slice(call.in.h0, {1, row, 1}), kept));
    c.push_back(ops::scale(ops::slice(call.in.c0, {1, row, 1}), kept));
    batch.in.sequence_lengths->push_back(static_cast<std::int32_t>(last - first));
  }
  batch.in.x = ops::concat(x, 1);
  batch.in.h0 = ops::concat(h, 1);
  batch.in.c0 = ops::concat(c, 1);
  const ops::RnnOutputs wanted = ops::rnn(batch.spec, batch.in, nullptr);
  for (std::size_t s = 0; s < kCut.size(); ++s) {
    const auto& [row, first, last] = kCut[s];
    const Tensor mine = ops::slice(ops::slice(found.output, {1, row, 1}), {0, first, last - first});
    const Tensor theirs = ops::slice(
        ops::slice(wanted.output, {1, static_cast<std::int64_t>(s), 1}), {0, 0, last - first});
    expect_near(mine, theirs);
  }
}

TEST(StepFlags, OfAnotherSizeAreRefused) {
  Flagged call = make_call(RnnMode::kGru, Direction::kUnidirectional);
  call.in.flags.mask = {true, false};
  expect_error<ArgumentError>([&] { ops::rnn(call.spec, call.in, nullptr); },
                              "[rnn] mask has 2 elements, expected one a step: 6 times 3");
  call.in.flags = {.reset = Flags(17)};
  expect_error<ArgumentError>([&] { ops::rnn(call.spec, call.in, nullptr); },
                              "[rnn] reset has 17 elements, expected one a step: 6 times 3");
}

}  // namespace
}  // namespace openrnn::testing
