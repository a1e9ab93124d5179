// What every engine refuses alike, word for word.
#include <gtest/gtest.h>

#include "openrnn/engine_tangent.h"
#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

RnnSpec small() { return {.num_units = 3, .input_size = 2}; }

ForwardArgs call_of(const RnnSpec& spec, PackFor purpose = PackFor::kInference) {
  const Array params = initialize_params(ParamsLayout(spec), 1);
  ForwardArgs args;
  args.params = engine("reference").pack(spec, params.view(), purpose);
  args.max_time = 2;
  args.batch = 4;
  return args;
}

TEST(Checks, OfACall) {
  const auto refused = [](const ForwardArgs& args, const std::string& expected) {
    expect_error<ArgumentError>([&] { check_forward("call", args); }, "[call] " + expected);
  };
  refused({}, "params is null, expected packed parameters");
  ForwardArgs args = call_of(small());
  args.recompute = -2;
  refused(args, "recompute is -2, expected a number of steps, 0 or kRecomputeRoot");
  args = call_of(small());
  args.max_time = args.batch = std::int64_t{1} << 40;
  refused(args, "max_time is 1099511627776 and batch 1099511627776, expected a product below 2^63");
  args.batch = std::int64_t{1} << 22;
  refused(args, "x has 4611686018427387904 steps of 2, expected fewer than 2^63 elements");
  args = call_of(small());
  refused(args, "x is null, expected 16 elements");
  float x[16] = {};
  args.x = x;
  refused(args, "y is null, expected 24 elements");
  args.dropout = {.first_row = 1, .whole_batch = 4};
  refused(args,
          "first_row is 1 of 4 rows, and whole_batch 4, expected rows within it, and at most "
          "2^32");
}

// Which of the three it is, the message need not say; none passes.
TEST(Checks, OfMasksAroundACall) {
  for (double TrainingOptions::*const rate :
       {&TrainingOptions::input_dropout, &TrainingOptions::output_dropout,
        &TrainingOptions::drop_connect}) {
    RnnSpec spec = small();
    spec.training.*rate = 0.5;
    ForwardArgs args = call_of(spec);
    args.max_time = 0;
    check_forward("call", args);
    args.training = true;
    expect_error<ArgumentError>(
        [&] { check_forward("call", args); },
        "[call] params are of " + describe(spec) +
            ", expected them without input_dropout, output_dropout and drop_connect: operations "
            "apply those (ops::rnn), engines do not");
  }
}

TEST(Checks, OfWhatAnEngineHasNot) {
  const TaggedEngine other(test_device(), false);
  expect_error<UnsupportedError>(
      [&] { other.saved_in(call_of(small())); },
      "[saved_in] engine 'test' keeps what backward reads in memory of its own, expected engine "
      "'cpu'");
  TangentArgs tangent;
  tangent.spec = {.mode = RnnMode::kGru, .num_units = 3};
  expect_error<UnsupportedError>([&] { other.tangent(tangent); },
                                 "[tangent] engine 'test' has no second derivatives of such a gru, "
                                 "expected engine 'reference'");
  expect_error<UnsupportedError>(
      [&] { check_recompute(other, 32); },
      "[forward_saving] engine 'test' keeps all that backward reads and cannot recompute it, "
      "expected save=True (recompute 0), or engine 'cpu'");
  check_recompute(other, 0);
  BackwardArgs rows;
  double norms[4] = {};
  rows.row_norms = norms;
  const std::string rest =
      "[backward] gradients of rows are asked of engine 'test', which has none, expected engine "
      "'cpu'";
  expect_error<UnsupportedError>([&] { check_rows(other, rows, 4); }, rest);
  rows = {};
  rows.row_dparams = norms;
  expect_error<UnsupportedError>([&] { check_rows(other, rows, 4); }, rest);
  rows = {};
  check_rows(other, rows, 4);
  float reserve[16] = {};
  ForwardArgs args = call_of(small(), PackFor::kTraining);
  args.reserve = reserve;
  expect_error<UnsupportedError>([&] { check_reserve("call", other, args); },
                                 "[call] engine 'test' keeps what backward reads in memory of its "
                                 "own, expected no reserve, or "
                                 "engine 'cpu'");
}

// What an engine of a GPU refuses, another one may run: the message names both.
TEST(Checks, OfWhatAnEngineCannotPack) {
  RnnSpec spec = small();
  spec.compute.math = Math::kTf32;
  const Engine& own = engine("reference");
  expect_error<EngineError>(
      [&] { check_pack(own, spec, PackFor::kInference); },
      "[pack] 'reference' cannot run " + describe(spec) +
          ": math 'tf32' is arithmetic of GPUs; a processor has 'float32', 'bf16' and 'bf16x3'");
  spec.compute.math = Math::kFp16;
  EXPECT_EQ(unsupported_on_cpu(spec),
            "math 'fp16' is arithmetic of GPUs; a processor has 'float32', 'bf16' and 'bf16x3'");
  for (const Math math : {Math::kFloat32, Math::kBf16, Math::kBf16x3}) {
    spec.compute.math = math;
    EXPECT_EQ(unsupported_on_cpu(spec), "");
    check_pack(own, spec, PackFor::kTraining);
  }
}

TEST(Checks, OfTheRowsWhoseGradientsAreAsked) {
  const Engine& own = engine("cpu");
  float some[4] = {};
  double norms[4] = {};
  const auto of = [&](std::int64_t first, std::int64_t last) {
    BackwardArgs args;
    args.row_dparams = some;
    args.first_row = first;
    args.last_row = last;
    return args;
  };
  for (const auto& [first, last] : {std::pair{0, 0}, {0, 4}, {4, 4}, {1, 3}}) {
    check_rows(own, of(first, last), 4);
  }
  for (const auto& [first, last] : {std::pair{-1, 2}, {3, 2}, {2, 5}}) {
    BackwardArgs args = of(first, last);
    const std::string rows = std::to_string(first) + " to " + std::to_string(last);
    expect_error<ArgumentError>(
        [&] { check_rows(own, args, 4); },
        "[backward] row_dparams is of rows " + rows + ", expected rows within 0 to 4");
    // Norms are of all rows.
    args.row_dparams = nullptr;
    args.row_norms = norms;
    check_rows(own, args, 4);
  }
}

TEST(Checks, OfAReserve) {
  const Engine& own = engine("cpu");
  alignas(kReserveAlignment) float reserve[32] = {};
  ForwardArgs args = call_of(small(), PackFor::kTraining);
  args.reserve = reserve;
  check_reserve("call", own, args);
  args.recompute = 32;
  expect_error<ArgumentError>([&] { check_reserve("call", own, args); },
                              "[call] reserve is given and recompute is 32, expected one of them");
  args.recompute = 0;
  args.reserve = reserve + 1;
  expect_error<ArgumentError>([&] { check_reserve("call", own, args); },
                              "[call] reserve is not aligned, expected an address that is a "
                              "multiple of 64");
  args.recompute = 32;
  args.reserve = nullptr;
  check_reserve("call", own, args);
}

TEST(Checks, OfSizesAndLengths) {
  const float x[16] = {};
  float y[24] = {};
  const auto refused = [&](auto change, const std::string& expected) {
    ForwardArgs args = call_of(small());
    args.x = x;
    args.y = y;
    check_forward("call", args);
    change(args);
    expect_error<ArgumentError>([&] { check_forward("call", args); }, "[call] " + expected);
  };
  refused([](ForwardArgs& args) { args.max_time = -1; },
          "max_time is -1 and batch 4, expected 0 or more");
  refused([](ForwardArgs& args) { args.batch = -1; },
          "max_time is 2 and batch -1, expected 0 or more");
  refused([](ForwardArgs& args) { args.max_threads = -1; },
          "max_threads is -1, expected 0 or more");
  std::int32_t lengths[] = {0, 2, 1, 2};
  ForwardArgs whole = call_of(small());
  whole.x = x;
  whole.y = y;
  whole.sequence_lengths = lengths;
  whole.recompute = kRecomputeRoot;
  check_forward("call", whole);
  for (const std::int32_t length : {-1, 3}) {
    lengths[3] = length;
    refused([&](ForwardArgs& args) { args.sequence_lengths = lengths; },
            "sequence_lengths[3] is " + std::to_string(length) + ", expected 0 to 2");
  }
}

TEST(Checks, OfAPartOfABatch) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  check_part("call", {}, 7);
  check_part("call", {.first_row = 0, .whole_batch = 4}, 4);
  check_part("call", {.first_row = 4, .whole_batch = 4}, 0);
  check_part("call", {.first_row = kMost - 3, .whole_batch = kMost}, 3);
  const struct {
    std::int64_t first, rows, whole;
  } cases[] = {{-1, 2, 4}, {1, -1, 4}, {1, 4, 4}, {2, 1, 0}, {0, 4, kMost + 1}};
  for (const auto& one : cases) {
    expect_error<ArgumentError>(
        [&] { check_part("call", {.first_row = one.first, .whole_batch = one.whole}, one.rows); },
        "[call] first_row is " + std::to_string(one.first) + " of " + std::to_string(one.rows) +
            " rows, and whole_batch " + std::to_string(one.whole) +
            ", expected rows within it, and at most 2^32");
  }
}

TEST(Checks, OfARecomputeInWholeGroups) {
  EXPECT_EQ(recompute_steps(0, 100), 0);
  EXPECT_EQ(recompute_steps(1, 100), 32);
  EXPECT_EQ(recompute_steps(33, 100), 64);
  // No longer than the sequence, up to a whole group.
  EXPECT_EQ(recompute_steps(1000, 100), 128);
  EXPECT_EQ(recompute_steps(1000, 0), 32);
  EXPECT_EQ(recompute_steps(std::int64_t{1} << 62, 96), 96);
  // About the root: the first group that is not shorter.
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 0), 32);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 1000), 32);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 32 * 32 + 32), 64);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, std::int64_t{64} * 64), 64);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, std::int64_t{64} * 65), 96);
}

}  // namespace
}  // namespace openrnn::testing
