// What a call of the reference engine takes and refuses.
#include <gtest/gtest.h>

#include "conformance/support/run.h"
#include "reference/reference.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

TEST(ReferenceContract, RefusesParametersOfTheWrongKind) {
  const Case c = parse_case("gru L2 U6 I8 bi f32", "small");
  const Engine& engine = reference_engine();
  const auto pack = [&](const Array& params) {
    engine.pack(c.spec, params.view(), PackFor::kTraining);
  };
  expect_error<ArgumentError>(
      [&] { pack(Array(DType::kFloat32, {1295})); },
      "[pack] params has 1295 elements, expected at least 1296 for gru, 2 layers, 6 units, input "
      "size 8, bidirectional, float32");
  expect_error<ArgumentError>([&] { pack(Array(DType::kFloat64, {1296})); },
                              "[pack] params is float64, expected float32");
  expect_error<ArgumentError>(
      [&] {
        pack(Array(DType::kFloat32, {1296, 1}));
      },
      "[pack] params has shape [1296, 1], expected 1 dimension of 1296");
}

TEST(ReferenceContract, RefusesWrongCalls) {
  const Case c = parse_case("lstm L1 U3 I2 B2 T4 f32", "small");
  const Data d = make_data(c);
  const Engine& engine = reference_engine();
  ForwardBuffers out = forward_buffers(c);
  const ForwardArgs good =
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kInference), false);
  const auto expect = [&](const ForwardArgs& args, const std::string& text) {
    expect_error<ArgumentError>([&] { engine.forward(args); }, text);
  };
  ForwardArgs bad = good;
  bad.x = nullptr;
  expect(bad, "[forward] x is null, expected 16 elements");
  bad = good;
  bad.y = nullptr;
  expect(bad, "[forward] y is null, expected 24 elements");
  bad = good;
  bad.batch = -1;
  expect(bad, "[forward] max_time is 4 and batch -1, expected 0 or more");
  bad = good;
  bad.params = nullptr;
  expect(bad, "[forward] params is null, expected packed parameters");
  bad = good;
  bad.max_time = std::int64_t{1} << 62;
  bad.batch = 4;
  expect(bad,
         "[forward] max_time is 4611686018427387904 and batch 4, expected a product below 2^63");
  const std::int32_t lengths[] = {4, 5}, negative[] = {-1, 2};
  bad = good;
  bad.sequence_lengths = lengths;
  expect(bad, "[forward] sequence_lengths[1] is 5, expected 0 to 4");
  bad.sequence_lengths = negative;
  expect(bad, "[forward] sequence_lengths[0] is -1, expected 0 to 4");
  expect_error<StateError>(
      [&] { engine.forward_saving(good); },
      "[forward_saving] params are packed for inference, expected them packed for training");
  expect_error<ArgumentError>(
      [&] { engine.backward({}); },
      "[backward] saved is null, expected what forward_saving of reference returned");
}

TEST(ReferenceContract, TakesALongerBuffer) {
  const Case c = parse_case("gru L1 U3 I2 B2 T4 f32", "small");
  Data d = make_data(c);
  const Result expected = run_inference(reference_engine(), c, d);
  Array longer(DType::kFloat32, {params_size(c.spec) + 5});
  std::memcpy(longer.data(), d.params.data(), d.params.size_bytes());
  d.params = std::move(longer);
  EXPECT_EQ(first_difference(expected, run_inference(reference_engine(), c, d)), "");
}

TEST(ReferenceContract, WritesOnlyWhatIsWanted) {
  const Case c = parse_case("lstm L2 U3 I2 B2 T4 bi f32", "small");
  const Data d = make_data(c);
  const Engine& engine = reference_engine();
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs args =
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  args.hn = args.cn = nullptr;
  const auto saved = engine.forward_saving(args);
  const Result all = run_backward(engine, c, d, *saved);
  Array dh0(DType::kFloat32, {c.h_size()});
  BackwardArgs few;
  few.saved = saved.get();
  few.dy = d.dy.data();
  few.dhn = d.dhn.data();
  few.dcn = d.dcn.data();
  few.dh0 = dh0.data();
  engine.backward(few);
  Result only, expected;
  only.parts.emplace_back("dh0", std::move(dh0));
  expected.parts.emplace_back("dh0", all["dh0"]);
  EXPECT_EQ(first_difference(expected, only), "");
}

TEST(ReferenceContract, MissingGradientsCountAsZeros) {
  const Case c = parse_case("lstm L2 U3 I2 B2 T4 f64", "small");
  Data d = make_data(c);
  const Engine& engine = reference_engine();
  for (Array* zeroed : {&d.dy, &d.dhn, &d.dcn}) {
    std::memset(zeroed->data(), 0, zeroed->size_bytes());
  }
  ForwardBuffers out = forward_buffers(c);
  const auto saved = engine.forward_saving(
      forward_args(c, d, out, engine.pack(c.spec, d.params.view(), PackFor::kTraining), true));
  Array dparams = random_array(DType::kFloat64, params_size(c.spec), 5, 6, 1);
  BackwardArgs args;
  args.saved = saved.get();
  args.dparams = dparams.data();
  engine.backward(args);
  for (const double v : dparams.as<double>()) ASSERT_EQ(v, 0.0);
}

}  // namespace
}  // namespace openrnn::conformance
