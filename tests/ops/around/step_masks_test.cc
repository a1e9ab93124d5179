// recurrent_dropout and zoneout of the operation: gradients, calls, expectations, and masks of
// sequences that resets cut out of a row.
#include <set>

#include "ops/check_gradient.h"
#include "ops/small_spec.h"

namespace openrnn::testing {
namespace {

struct Masked {
  RnnSpec spec;
  ops::RnnInputs in;
  ops::RnnOutputs operator()() const { return ops::rnn(spec, in, nullptr); }
};

Masked make_call(RnnMode mode, std::int64_t time = 5, std::int64_t batch = 3) {
  Masked call{small_spec(mode), {}};
  call.spec.training = {};
  call.in.x = random_tensor({time, batch, call.spec.input_size}, 1, 0.1, 0.9);
  call.in.h0 = random_tensor(call.spec.h_shape(batch), 2, -0.9, 0.9);
  if (call.spec.has_cell()) call.in.c0 = random_tensor(call.spec.c_shape(batch), 3, -0.9, 0.9);
  call.in.params = random_tensor({params_size(call.spec)}, 4, -0.7, 0.8);
  call.in.dropout = {.seed = 9, .call = 2};
  return call;
}

void expect_gradients(const Masked& call) {
  std::vector<Tensor> given{call.in.x, call.in.params, call.in.h0};
  if (call.spec.has_cell()) given.push_back(call.in.c0);
  check_gradient(
      [&](const std::vector<Tensor>& moved) {
        Masked other = call;
        other.in.x = moved[0];
        other.in.params = moved[1];
        other.in.h0 = moved[2];
        if (call.spec.has_cell()) other.in.c0 = moved[3];
        const ops::RnnOutputs out = other();
        std::vector<Tensor> results{out.output, out.h};
        if (!out.c.empty()) results.push_back(out.c);
        return results;
      },
      given);
}

std::vector<Masked> every_option() {
  std::vector<Masked> calls;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const auto form : {RecurrentDropoutForm::kState, RecurrentDropoutForm::kCandidate}) {
      Masked call = make_call(mode);
      call.spec.training = {.recurrent_dropout = 0.375, .recurrent_dropout_form = form};
      calls.push_back(call);
      call.spec.zoneout = 0.25;
      if (call.spec.has_cell()) call.spec.zoneout_cell = 0.5;
      call.in.sequence_lengths = {{4, 0, 5}};
      calls.push_back(call);
      if (mode != RnnMode::kGru) continue;
      call.spec.reset_after = false;
      calls.push_back(call);
    }
  }
  return calls;
}

TEST(StepMasks, HaveGradientsInTraining) {
  for (const Masked& call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    expect_gradients(call);
  }
}

TEST(StepMasks, HaveGradientsOfTheExpectation) {
  for (Masked call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    call.in.training = false;
    call.in.save = true;
    expect_gradients(call);
  }
}

TEST(StepMasks, ChangeWithTheCall) {
  for (const Masked& call : every_option()) {
    std::set<std::vector<double>> seen;
    for (const std::uint64_t number : {0, 1, 2}) {
      Masked other = call;
      other.in.dropout.call = number;
      seen.insert(values_of(other().output));
    }
    EXPECT_EQ(seen.size(), 3u) << describe(call.spec);
    EXPECT_EQ(seen.count(values_of(call().output)), 1u) << describe(call.spec);
  }
}

TEST(StepMasks, ZoneoutOutsideOfTrainingIsTheExpectation) {
  Masked call = make_call(RnnMode::kLstm, 1);
  call.in.training = false;
  call.spec.num_layers = 1;
  call.in.h0 = random_tensor(call.spec.h_shape(3), 2);
  call.in.c0 = random_tensor(call.spec.c_shape(3), 3);
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
  expect_mixed(call.in.h0, plain.h, 0.25, zoned.h);
  expect_mixed(call.in.c0, plain.c, 0.625, zoned.c);
}

// A row with a reset is two sequences: two rows of a call whose masks are those of their places.
TEST(StepMasks, OfASequenceAreItsOwn) {
  for (Masked call : every_option()) {
    SCOPED_TRACE(describe(call.spec));
    call.in.sequence_lengths.reset();
    Masked cut = call;
    call.in.x = random_tensor({6, 1, call.spec.input_size}, 5);
    cut.in.x = ops::transpose_leading(ops::reshape(call.in.x, {2, 3, call.spec.input_size}));
    call.in.h0 = call.in.c0 = cut.in.h0 = cut.in.c0 = {};
    call.in.flags.reset = {false, false, false, true, false, false};
    const Tensor whole = ops::reshape(call().output, {2, 3, call.spec.output_size()});
    EXPECT_EQ(values_of(whole), values_of(ops::transpose_leading(cut().output)));
    call.in.flags = {};
    EXPECT_NE(values_of(whole), values_of(call().output));
  }
}

}  // namespace
}  // namespace openrnn::testing
