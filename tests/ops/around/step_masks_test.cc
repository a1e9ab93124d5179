// recurrent_dropout and zoneout of the operation: gradients, calls, expectations, and masks of
// sequences that resets cut out of a row.
#include <set>

#include "ops/rnn_call.h"

namespace openrnn::testing {
namespace {

RnnCall make_call(RnnMode mode, std::int64_t time = 5, std::int64_t batch = 3) {
  RnnCall call{small_spec(mode), {}};
  call.spec.training = {};
  call.inputs.x = random_tensor({time, batch, call.spec.input_size}, 1, 0.1, 0.9);
  call.inputs.h0 = random_tensor(call.spec.h_shape(batch), 2, -0.9, 0.9);
  if (call.spec.has_cell()) call.inputs.c0 = random_tensor(call.spec.c_shape(batch), 3, -0.9, 0.9);
  call.inputs.params = random_tensor({params_size(call.spec)}, 4, -0.7, 0.8);
  call.inputs.dropout = {.seed = 9, .call = 2};
  return call;
}

std::vector<RnnCall> every_option() {
  std::vector<RnnCall> calls;
  for (const RnnMode mode : kModes) {
    for (const auto form : {RecurrentDropoutForm::kState, RecurrentDropoutForm::kCandidate}) {
      RnnCall call = make_call(mode);
      call.spec.training = {.recurrent_dropout = 0.375, .recurrent_dropout_form = form};
      calls.push_back(call);
      call.spec.zoneout = 0.25;
      if (call.spec.has_cell()) call.spec.zoneout_cell = 0.5;
      call.inputs.sequence_lengths = {{4, 0, 5}};
      calls.push_back(call);
      if (mode != RnnMode::kGru) continue;
      call.spec.reset_after = false;
      calls.push_back(call);
    }
  }
  return calls;
}

TEST(StepMasks, HaveGradientsInTraining) {
  for (const RnnCall& call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    check_gradient(call, call.sources());
  }
}

TEST(StepMasks, HaveGradientsOfTheExpectation) {
  for (RnnCall call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    call.inputs.training = false;
    call.inputs.save = true;
    check_gradient(call, call.sources());
  }
}

TEST(StepMasks, ChangeWithTheCall) {
  for (const RnnCall& call : every_option()) {
    std::set<std::vector<double>> seen;
    for (const std::uint64_t number : {0, 1, 2}) {
      RnnCall other = call;
      other.inputs.dropout.call = number;
      seen.insert(values_of(other().output));
    }
    EXPECT_EQ(seen.size(), 3u) << describe(call.spec);
    EXPECT_EQ(seen.count(values_of(call().output)), 1u) << describe(call.spec);
  }
}

TEST(StepMasks, ZoneoutOutsideOfTrainingIsTheExpectation) {
  RnnCall call = make_call(RnnMode::kLstm, 1);
  call.inputs.training = false;
  call.spec.num_layers = 1;
  call.inputs.h0 = random_tensor(call.spec.h_shape(3), 2);
  call.inputs.c0 = random_tensor(call.spec.c_shape(3), 3);
  const ops::RnnOutputs plain = call();
  call.spec.zoneout = 0.25;
  call.spec.zoneout_cell = 0.625;
  const ops::RnnOutputs zoned = call();
  const auto expect_mixed = [](const Tensor& before, const Tensor& now, double rate,
                               const Tensor& found) {
    const std::vector<double> a = values_of(before), b = values_of(now), c = values_of(found);
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(c[i], rate * a[i] + (1.0 - rate) * b[i], 1e-15) << i;
    }
  };
  expect_mixed(call.inputs.h0, plain.h, 0.25, zoned.h);
  expect_mixed(call.inputs.c0, plain.c, 0.625, zoned.c);
}

// A row with a reset is two sequences: two rows of a call whose masks are those of their places.
TEST(StepMasks, OfASequenceAreItsOwn) {
  for (RnnCall call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    call.inputs.sequence_lengths.reset();
    RnnCall cut = call;
    call.inputs.x = random_tensor({6, 1, call.spec.input_size}, 5);
    cut.inputs.x =
        ops::transpose_leading(ops::reshape(call.inputs.x, {2, 3, call.spec.input_size}));
    call.inputs.h0 = call.inputs.c0 = cut.inputs.h0 = cut.inputs.c0 = {};
    call.inputs.flags.reset = {false, false, false, true, false, false};
    const Tensor whole = ops::reshape(call().output, {2, 3, call.spec.output_size()});
    EXPECT_EQ(values_of(whole), values_of(ops::transpose_leading(cut().output)));
    call.inputs.flags = {};
    EXPECT_NE(values_of(whole), values_of(call().output));
  }
}

}  // namespace
}  // namespace openrnn::testing
