// The other arithmetics of the reference, against numbers worked out here by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/support/run.h"
#include "reference/reference.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

/// One step of one relu unit: y = relu(W x + R h + bW + bR) in float32 storage.
struct OneUnit {
  RnnSpec spec{.mode = RnnMode::kRnnRelu, .num_units = 1, .cell_clip = {}};
  std::vector<float> params;  // W [I], R, bW, bR
  std::vector<float> x;       // [B, I]
  std::vector<float> h;       // [B]

  std::vector<float> run() const {
    std::vector<float> y(h.size());
    reference_engine().forward(args(y, PackFor::kInference));
    return y;
  }
  ForwardArgs args(std::vector<float>& y, PackFor purpose) const {
    ForwardArgs args;
    args.params = reference_engine().pack(
        spec, {params.data(), DType::kFloat32, {static_cast<std::int64_t>(params.size())}},
        purpose);
    args.max_time = 1;
    args.batch = static_cast<std::int64_t>(h.size());
    args.x = x.data();
    args.h0 = h.data();
    args.y = y.data();
    return args;
  }
};

OneUnit bf16_unit() {
  OneUnit unit;
  unit.spec.compute.math = Math::kBf16;
  unit.spec.input_size = 1;
  // 1 + 2^-8 is half way between 1 and 1 + 2^-7, and goes to the even one; x the other way.
  unit.params = {1.00390625F, 0.5F, 0.1F, 0.001F};
  unit.x = {1.01171875F};
  unit.h = {0.3F};
  return unit;
}
constexpr double kX = 1.015625, kH = 0.30078125;  // as the products see x and h

TEST(ReferenceBf16, RoundsTheOperandsOfProductsAndNoBias) {
  const double biases = static_cast<double>(0.1F) + static_cast<double>(0.001F);
  EXPECT_EQ(bf16_unit().run()[0], static_cast<float>(1.0 * kX + 0.5 * kH + biases));
}

TEST(ReferenceBf16, SkippedInputIsNoProduct) {
  OneUnit unit = bf16_unit();
  unit.spec.input_mode = InputMode::kSkipInput;
  unit.params = {0.5F, 0.1F, 0.001F};
  const double biases = static_cast<double>(0.1F) + static_cast<double>(0.001F);
  EXPECT_EQ(unit.run()[0], static_cast<float>(1.01171875 + 0.5 * kH + biases));
}

TEST(ReferenceBf16, SubnormalOperandsCountAsZero) {
  OneUnit unit = bf16_unit();
  unit.params = {1e30F, 0.0F, 0.0F, 0.0F};
  unit.x = {1e-39F};
  EXPECT_EQ(unit.run()[0], 0.0F);
  // The smallest normal number is kept.
  unit.x = {std::numeric_limits<float>::min()};
  EXPECT_GT(unit.run()[0], 1e-8F);
}

TEST(ReferenceBf16, GradientsRoundBothOperandsAndNoBias) {
  const OneUnit unit = bf16_unit();
  std::vector<float> y(1);
  const auto saved = reference_engine().forward_saving(unit.args(y, PackFor::kTraining));
  const float dy = 0.7F;
  float dx = 0.0F, dh0 = 0.0F, dparams[4] = {};
  BackwardArgs args;
  args.saved = saved.get();
  args.dy = &dy;
  args.dx = &dx;
  args.dh0 = &dh0;
  args.dparams = dparams;
  reference_engine().backward(args);
  const double d = 0.69921875;  // 0.7 as a bfloat16
  EXPECT_EQ(dx, static_cast<float>(1.0 * d));
  EXPECT_EQ(dh0, static_cast<float>(0.5 * d));
  EXPECT_EQ(dparams[0], static_cast<float>(d * kX));
  EXPECT_EQ(dparams[1], static_cast<float>(d * kH));
  EXPECT_EQ(dparams[2], 0.7F);
  EXPECT_EQ(dparams[3], 0.7F);
}

/// As a bfloat16, by another way than bits: 8 digits of the mantissa.
double rounded(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

Array rounded(const Array& values) {
  Array wide = cast(values.view(), DType::kFloat64);
  for (double& v : wide.as<double>()) v = rounded(v);
  return wide;
}

TEST(ReferenceBf16, IsFloat64OverRoundedOperandsInOneStep) {
  // gru blends with h itself: there h is a bfloat16 already, so that rounding it changes nothing.
  for (const std::string text :
       {"lstm L1 U5 I7 B3 T1 ", "gru L1 U5 I7 B3 T1 ", "rnn_tanh L1 U5 I7 B3 T1 "}) {
    const Case c = parse_case(text + "f32 bf16", "one_step");
    Data d = make_data(c);
    d.h0 = cast(rounded(d.h0).view(), DType::kFloat32);
    const Case wide = parse_case(text + "f64", "one_step");
    Data w{rounded(d.params),
           rounded(d.x),
           rounded(d.h0),
           cast(d.c0.view(), DType::kFloat64),
           cast(d.dy.view(), DType::kFloat64),
           {},
           {}};
    const ParamsLayout layout(c.spec);
    const Array exact = cast(d.params.view(), DType::kFloat64);
    for (const ParamRegion& bias : layout.biases()) {
      std::copy_n(exact.as<double>().begin() + bias.offset, bias.size(),
                  w.params.as<double>().begin() + bias.offset);
    }
    const Result expected = run_inference(reference_engine(), wide, w);
    const Result found = run_inference(reference_engine(), c, d);
    for (std::size_t n = 0; n < found.parts.size(); ++n) {
      const Array& e = expected.parts[n].second;
      for (std::int64_t i = 0; i < e.size(); ++i) {
        EXPECT_EQ(element(found.parts[n].second.view(), i),
                  static_cast<double>(static_cast<float>(element(e.view(), i))))
            << text << found.parts[n].first << i;
      }
    }
  }
}

TEST(ReferenceBf16x3, IsTheExactProduct) {
  for (const std::string text : {"lstm L2 U5 I7 B3 T4 P3 f32", "gru L1 U5 I7 B3 T4 bi f16"}) {
    const Case c = parse_case(text + " bf16x3", "split"), plain = parse_case(text, "plain");
    const Data d = make_data(c);
    EXPECT_EQ(
        first_difference(run_all(reference_engine(), plain, d), run_all(reference_engine(), c, d)),
        "");
  }
}

TEST(ReferenceStored, Float16AndBfloat16RoundWeightsAndNothingElse) {
  OneUnit unit = bf16_unit();
  unit.spec.compute.math = Math::kFloat32;
  const auto x = static_cast<double>(unit.x[0]), h = static_cast<double>(unit.h[0]);
  const double biases = static_cast<double>(0.1F) + static_cast<double>(0.001F);
  unit.spec.compute.weights_dtype = WeightsDType::kBfloat16;
  EXPECT_EQ(unit.run()[0], static_cast<float>(1.0 * x + 0.5 * h + biases));
  unit.spec.compute.weights_dtype = WeightsDType::kFloat16;
  unit.params[0] = 1.00146484375F;  // 1 + 1.5 * 2^-10: half way, to the even 1 + 2 * 2^-10
  EXPECT_EQ(unit.run()[0], static_cast<float>(1.001953125 * x + 0.5 * h + biases));
  unit.params[0] = 7e4F;
  EXPECT_EQ(unit.run()[0], std::numeric_limits<float>::infinity());
}

OneUnit int8_unit() {
  OneUnit unit;
  unit.spec.compute.weights_dtype = WeightsDType::kInt8;
  unit.spec.input_size = 3;
  // The largest of W is -1.27, so that a step is 0.01: q is 50, -127, 10. R alone: 127 steps.
  unit.params = {0.5F, -1.27F, 0.1F, -0.6F, 3.0F, 0.001F};
  // A step is 2 / 127 in the first row: 63.5 goes to the even 64; 127; -31.75. Half of that in the
  // second one, whose numbers are halves.
  unit.x = {1.0F, 2.0F, -0.5F, 0.5F, 1.0F, -0.25F};
  unit.h = {0.3F, -0.9F};
  return unit;
}

TEST(ReferenceInt8, ScalesWeightsByChannelAndActivationsByRow) {
  const OneUnit unit = int8_unit();
  const std::vector<float> y = unit.run();
  const double biases = static_cast<double>(3.0F) + static_cast<double>(0.001F);
  const auto sum = static_cast<double>(50 * 64 - 127 * 127 - 10 * 32);
  const double sw = static_cast<double>(1.27F / 127.0F), sa = static_cast<double>(2.0F / 127.0F);
  const double sr = static_cast<double>(0.6F / 127.0F);
  for (std::size_t b = 0; b < 2; ++b) {
    // One number is its own largest: 127 steps of its scale.
    const double sh = static_cast<double>(std::abs(unit.h[b]) / 127.0F);
    const double recurrent = -127.0 * (b == 0 ? 127.0 : -127.0) * sr * sh;
    EXPECT_NEAR(static_cast<double>(y[b]), sum * sw * sa / (b == 0 ? 1 : 2) + recurrent + biases,
                1e-6);
  }
}

TEST(ReferenceInt8, ZerosAndNumbersThatAreNotFinite) {
  OneUnit unit = int8_unit();
  unit.x = {0.0F, 0.0F, 0.0F, 1.0F, std::numeric_limits<float>::infinity(), 0.0F};
  unit.h = {0.0F, 0.0F};
  std::vector<float> y = unit.run();
  EXPECT_EQ(y[0], 3.0F + 0.001F);
  EXPECT_TRUE(std::isnan(y[1]));
  unit.params = {0.0F, 0.0F, 0.0F, 0.0F, 3.0F, 0.001F};
  unit.x = {1.0F, 2.0F, -0.5F, 1e-40F, -1e-38F, 0.0F};
  y = unit.run();
  EXPECT_EQ(y[0], 3.0F + 0.001F);
  EXPECT_EQ(y[1], 3.0F + 0.001F);
}

TEST(ReferenceArithmetic, RefusesWhatItCannot) {
  OneUnit unit = int8_unit();
  std::vector<float> y(2);
  expect_error<UnsupportedError>([&] { (void)unit.args(y, PackFor::kTraining); },
                                 "[pack] weights_dtype is 'int8', which is for inference; expected "
                                 "'none' in training");
  unit.spec.compute.weights_dtype = WeightsDType::kNone;
  unit.spec.compute.math = Math::kTf32;
  EXPECT_THROW((void)unit.args(y, PackFor::kInference), EngineError);
}

}  // namespace
}  // namespace openrnn::conformance
