// Gradients of samples through recurrent calls, alone and inside a model.
#include "ops/per_sample/per_sample.h"
#include "ops/small_spec.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

constexpr RnnMode kModes[] = {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu};
constexpr std::int64_t kTime = 5, kBatch = 4;

class PerSampleRnn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (on_other_device()) GTEST_SKIP() << "on the cpu only";
  }
};

struct Call {
  RnnSpec spec;
  ops::RnnInputs in;

  Tensors sources() const {
    Tensors all{in.params, in.x, in.h0};
    if (!in.c0.empty()) all.push_back(in.c0);
    return all;
  }
  ops::RnnOutputs run(const Tensors& sources) const {
    ops::RnnInputs given = in;
    given.params = sources[0];
    if (sources.size() > 1) given.x = sources[1];
    if (sources.size() > 2) given.h0 = sources[2];
    if (sources.size() > 3) given.c0 = sources[3];
    return ops::rnn(spec, given, nullptr);
  }
};

// [B, all that a row puts out], each value with a weight of its own.
Tensor of_rows(const ops::RnnOutputs& out, bool time_major) {
  Tensors parts;
  for (const Tensor& each : {out.output, out.h, out.c}) {
    if (each.empty()) continue;
    const Tensor rows = time_major ? ops::transpose_leading(each) : each;
    parts.push_back(ops::reshape(rows, {rows.shape()[0], -1}));
  }
  const Tensor all = ops::concat(parts, 1);
  return ops::multiply(all, random_tensor(all.shape(), 99, -1.0, 1.0, all.dtype()));
}

Call make_call(const RnnSpec& spec, bool time_major = true, std::int64_t time = kTime) {
  Call call{spec, {}};
  const DType dtype = spec.dtype;
  Shape x{time, kBatch, spec.input_size}, h = spec.h_shape(kBatch), c = spec.c_shape(kBatch);
  for (Shape* shape : {&x, &h, &c}) {
    if (!time_major) std::swap((*shape)[0], (*shape)[1]);
  }
  call.in.x = random_tensor(x, 1, -0.9, 0.9, dtype);
  call.in.h0 = random_tensor(h, 2, -0.9, 0.9, dtype);
  if (spec.has_cell()) call.in.c0 = random_tensor(c, 3, -0.9, 0.9, dtype);
  call.in.params = random_tensor({params_size(spec) + 5}, 4, -0.7, 0.8, dtype);
  call.in.time_major = time_major;
  call.in.dropout = {.seed = 5, .call = 2};
  return call;
}

void check(const Call& call, double tolerance = 1e-13) {
  const auto target = [&](const Tensors& in) { return of_rows(call.run(in), call.in.time_major); };
  expect_samples(target, call.sources(), 0, tolerance);
  // The parameters alone.
  expect_samples(target, {call.in.params}, 0, tolerance);
}

TEST_F(PerSampleRnn, OfEveryModeDirectionAndInput) {
  for (const RnnMode mode : kModes) {
    for (const auto direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const auto input : {InputMode::kLinearInput, InputMode::kSkipInput}) {
        for (const bool time_major : {true, false}) {
          RnnSpec spec = small_spec(mode);
          spec.direction = direction;
          spec.input_mode = input;
          spec.input_size = spec.num_units;
          Call call = make_call(spec, time_major);
          check(call);
          call.in.sequence_lengths = {3, 0, 5, 1};
          check(call);
        }
      }
    }
  }
}

// Every option that a network has, together with some others.
TEST_F(PerSampleRnn, OfEveryOption) {
  const auto of = [](RnnMode mode, const std::function<void(RnnSpec&)>& set) {
    RnnSpec spec = small_spec(mode);
    spec.training = {};
    spec.num_units = 4;
    set(spec);
    Call call = make_call(spec);
    call.in.sequence_lengths = {3, 0, 5, 1};
    check(call);
  };
  of(RnnMode::kLstm, [](RnnSpec& s) { s.num_proj = 2, s.proj_clip = {{-0.2, 0.2}}; });
  of(RnnMode::kGru, [](RnnSpec& s) { s.num_proj = 3; });
  of(RnnMode::kLstm, [](RnnSpec& s) { s.use_peepholes = true, s.cell_clip = {{-0.5, 0.5}}; });
  of(RnnMode::kLstm, [](RnnSpec& s) { s.coupled_gates = true, s.forget_bias = 1.0; });
  of(RnnMode::kGru, [](RnnSpec& s) { s.reset_after = false, s.single_bias = true; });
  of(RnnMode::kRnnTanh, [](RnnSpec& s) { s.use_bias = false; });
  for (const auto norm : {LayerNorm::kProducts, LayerNorm::kGates}) {
    of(RnnMode::kLstm, [norm](RnnSpec& s) {
      s.layer_norm = norm, s.layer_norm_cell = LayerNormCell::kOutput, s.use_peepholes = true;
    });
  }
  of(RnnMode::kGru, [](RnnSpec& s) { s.layer_norm = LayerNorm::kProducts; });
  of(RnnMode::kLstm, [](RnnSpec& s) { s.zoneout = 0.3, s.zoneout_cell = 0.2; });
  for (const auto form : {RecurrentDropoutForm::kState, RecurrentDropoutForm::kCandidate}) {
    of(RnnMode::kGru, [form](RnnSpec& s) {
      s.training.recurrent_dropout = 0.4, s.training.recurrent_dropout_form = form;
    });
  }
}

// Operations around the engine, of which drop_connect computes what all rows share.
TEST_F(PerSampleRnn, OfMasksAroundTheCall) {
  for (const RnnMode mode : kModes) {
    RnnSpec spec = small_spec(mode);
    spec.training = {.input_dropout = 0.3, .output_dropout = 0.4};
    check(make_call(spec));
    spec.training.drop_connect = 0.5;
    check(make_call(spec));
  }
}

TEST_F(PerSampleRnn, OfMaskedStepsAndResets) {
  std::vector<bool> mask, reset;
  for (std::int64_t i = 0; i < kTime * kBatch; ++i) {
    mask.push_back(i % 3 != 1);
    reset.push_back(i % 7 == 5);
  }
  for (const bool time_major : {true, false}) {
    for (const bool zero : {true, false}) {
      RnnSpec spec = small_spec(RnnMode::kLstm);
      spec.training = {};
      Call call = make_call(spec, time_major);
      call.in.flags = {.mask = mask, .zero_output_for_mask = zero};
      check(call);
      call.in.flags.reset = reset;
      call.in.flags.reset_to_initial = true;
      check(call);
    }
  }
}

TEST_F(PerSampleRnn, OfCallsThatRecompute) {
  for (const auto direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
    RnnSpec spec = small_spec(RnnMode::kLstm);
    spec.direction = direction;
    Call call = make_call(spec, true, 70);
    call.in.sequence_lengths = {70, 33, 0, 64};
    for (const std::int64_t recompute : {std::int64_t{32}, kRecomputeRoot}) {
      call.in.recompute = recompute;
      check(call, 1e-12);
    }
  }
}

// Gradients too large to be made at once are made for a few rows at a time.
TEST_F(PerSampleRnn, OfLargeNetworksThatRecompute) {
  const RnnSpec spec{
      .mode = RnnMode::kRnnTanh, .num_units = 1300, .input_size = 2, .dtype = DType::kFloat64};
  for (const std::int64_t recompute : {std::int64_t{32}, kRecomputeRoot}) {
    GradientTape tape;
    const Tensor params = tape.watch(random_tensor({params_size(spec)}, 1, -0.05, 0.05));
    const Tensor x = random_tensor({2, 5, 2}, 2);
    const ops::RnnInputs in{.x = x, .params = params, .recompute = recompute};
    const Tensor losses = ops::square(ops::transpose_leading(ops::rnn(spec, in, nullptr).output));
    tape.close();
    const std::vector<double> norms = tape.per_sample_norms(losses, Tensors{params});
    ASSERT_EQ(norms.size(), 5U);
    for (std::int64_t b = 0; b < 5; ++b) {
      const DeviceArray own =
          tape.gradient(losses, Tensors{params}, losses_of_row(losses, 0, b))[0];
      const double squares = own.device().sum_of_squares(own.dtype(), own.size(), own.data());
      EXPECT_NEAR(norms[static_cast<std::size_t>(b)], std::sqrt(squares),
                  1e-12 * std::sqrt(squares));
    }
  }
}

TEST_F(PerSampleRnn, InOtherTypes) {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::kFloat32, 2e-6}, std::pair{DType::kFloat16, 4e-3}}) {
    for (const RnnMode mode : kModes) {
      RnnSpec spec = small_spec(mode);
      spec.dtype = dtype;
      check(make_call(spec), tolerance);
    }
  }
}

// One network in two calls, the second from the states of the first.
TEST_F(PerSampleRnn, OfParametersInSeveralCalls) {
  RnnSpec spec = small_spec(RnnMode::kGru);
  spec.direction = Direction::kUnidirectional;
  const Call first = make_call(spec), second = make_call(spec);
  const auto target = [&](const Tensors& in) {
    const ops::RnnOutputs before = first.run({in[0]});
    return of_rows(second.run({in[0], in[1], before.h}), true);
  };
  expect_samples(target, {first.in.params, second.in.x});
}

TEST_F(PerSampleRnn, InsideOfAModel) {
  const Tensor words = int_tensor({3, 4}, {1, 1, 6, 1, 0, 2, 2, 6, 5, 5, 5, 5});
  const Tensor labels = int_tensor({3, 4}, {0, 5, -1, 2, 1, 1, 3, 4, -1, 2, 0, 1});
  for (const RnnMode mode : kModes) {
    for (const bool time_major : {true, false}) {
      RnnSpec spec = small_spec(mode);
      const std::int64_t batch = time_major ? 4 : 3;
      const auto model = [&](const Tensors& in) {
        const std::vector<std::int32_t> lengths =
            time_major ? std::vector<std::int32_t>{2, 0, 3, 1} : std::vector<std::int32_t>{4, 0, 1};
        const ops::RnnOutputs out = ops::rnn(spec,
                                             {.x = ops::embedding_lookup(in[0], words),
                                              .params = in[1],
                                              .sequence_lengths = lengths,
                                              .time_major = time_major,
                                              .dropout = {.seed = 3, .call = 1}},
                                             nullptr);
        return ops::softmax_cross_entropy_rows(ops::dense(out.output, in[2], in[3]), labels);
      };
      ASSERT_EQ(words.shape()[time_major ? 1 : 0], batch);
      expect_samples(model,
                     {random_tensor({7, 4}, 1), random_tensor({params_size(spec)}, 2),
                      random_tensor({6, 6}, 3), random_tensor({6}, 4)},
                     time_major ? 1 : 0);
    }
  }
}

TEST_F(PerSampleRnn, RefusesRowsThatMeet) {
  const Call call = make_call(small_spec(RnnMode::kLstm));
  // Losses of steps are no losses of rows.
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return call.run(in).output; }, call.sources(), 0),
            "[per_sample] rows of the batch meet in 'rnn', expected operations on each row apart");
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return call.run(in).output; }, call.sources(), 2),
            "[per_sample] rows of the batch meet in 'rnn', expected operations on each row apart");
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return call.run(in).h; }, call.sources(), 0),
            "[per_sample] rows of the batch meet in 'rnn', expected operations on each row apart");
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return call.run(in).c; }, call.sources(), 1), "");
}

TEST_F(PerSampleRnn, NeedsACallThatSaves) {
  Call call = make_call(small_spec(RnnMode::kLstm));
  call.in.training = false;
  GradientTape tape;
  const Tensor params = tape.watch(call.in.params);
  const Tensor target = call.run({params}).output;
  EXPECT_NE(error_of<ArgumentError>(
                [&] { static_cast<void>(tape.per_sample_norms(target, std::vector{params}, 1)); }),
            "");
}

}  // namespace
}  // namespace openrnn::testing
