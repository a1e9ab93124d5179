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

TEST(Checks, OfARecomputeInWholeGroups) {
  EXPECT_EQ(recompute_steps(0, 100), 0);
  EXPECT_EQ(recompute_steps(1, 100), 32);
  EXPECT_EQ(recompute_steps(33, 100), 64);
  // No longer than the sequence, up to a whole group.
  EXPECT_EQ(recompute_steps(1000, 100), 128);
  EXPECT_EQ(recompute_steps(1000, 0), 32);
  EXPECT_EQ(recompute_steps(std::int64_t{1} << 62, 96), 96);
}

}  // namespace
}  // namespace openrnn::testing
