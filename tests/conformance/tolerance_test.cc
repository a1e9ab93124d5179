// The bounds themselves: plain float arithmetic stays inside them, and mistakes do not.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "reference/reference.h"

namespace openrnn::conformance {

namespace {

/// A number that rounds to float after every operation and knows no double.
struct Single {
  float value = 0.0f;
  Single() = default;
  explicit Single(double exact) : value(static_cast<float>(exact)) {}
};
Single single(float value) {
  Single s;
  s.value = value;
  return s;
}
Single operator+(Single a, Single b) { return single(a.value + b.value); }
Single operator-(Single a, Single b) { return single(a.value - b.value); }
Single operator*(Single a, Single b) { return single(a.value * b.value); }
Single& operator+=(Single& a, Single b) { return a = a + b; }
Single sigmoid(Single a) { return single(1.0f / (1.0f + std::exp(-a.value))); }
Single tanh_of(Single a) { return single(std::tanh(a.value)); }
Single relu(Single a) { return single(std::max(a.value, 0.0f)); }
Single relu_slope(Single a) { return single(a.value > 0.0f ? 1.0f : 0.0f); }
Single other_activation(const CellActivation& f, Single a) {
  return Single(reference::other_activation(f, static_cast<double>(a.value)));
}
Single other_slope(const CellActivation& f, Single a) {
  return Single(reference::other_slope(f, static_cast<double>(a.value)));
}
Single clamp_to(Single c, double low, double high) {
  return single(std::clamp(c.value, static_cast<float>(low), static_cast<float>(high)));
}
Single clamp_slope(Single c, double low, double high) {
  return single(static_cast<float>(low) <= c.value && c.value <= static_cast<float>(high));
}
Single kept_as(Single a, DType dtype) {
  if (dtype == DType::kBfloat16) return single(to_float(to_bfloat16(a.value)));
  return dtype == DType::kFloat16 ? single(to_float(to_half(a.value))) : a;
}
Single as_bf16(Single a) { return Single(reference::as_bf16(static_cast<double>(a.value))); }
Single as_split(Single a) {
  const Single hi = as_bf16(a);
  return single(hi.value + as_bf16(single(a.value - hi.value)).value);
}
std::vector<Single> as_int8(const std::vector<Single>& row) {
  std::vector<double> values;
  for (const Single a : row) values.push_back(static_cast<double>(a.value));
  values = reference::as_int8(values);
  return {values.begin(), values.end()};
}
Single inverse_root(Single variance, double epsilon) {
  return single(1.0f / std::sqrt(variance.value + static_cast<float>(epsilon)));
}
Single times_mask(Single a, double mask) { return single(a.value * static_cast<float>(mask)); }

Array as_array(const std::vector<Single>& values, DType dtype) {
  std::vector<float> plain;
  for (const Single v : values) plain.push_back(v.value);
  const Shape shape{static_cast<std::int64_t>(plain.size())};
  return cast(Array::of<float>(shape, plain).view(), dtype);
}

/// run_all of that engine.
Result run_single(const Case& c, const Data& d) {
  const reference::Network net = reference::make_network(c.spec);
  std::vector<double> stored;
  for (std::size_t k = 0; k < net.size; ++k) {
    stored.push_back(element(d.params.view(), static_cast<std::int64_t>(k)));
  }
  reference::store_weights(net, stored);
  const std::vector<Single> params(stored.begin(), stored.end());
  const reference::ForwardInput<Single> in{params.data(), d.x.view(), given(c, d.h0),
                                           given(c, d.c0)};
  Result result;
  const auto add = [&](const char* name, const std::vector<Single>& values) {
    result.parts.emplace_back(name, as_array(values, c.spec.dtype));
  };
  reference::Call call = reference_call(c);
  const bool training = std::exchange(call.training, false);
  const auto inference = reference::forward<Single>(net, call, in);
  add("inference y", inference.y);
  add("inference hn", inference.hn);
  add("inference cn", inference.cn);
  if (!c.trains()) return result;
  call.training = training;
  const auto forward = reference::forward<Single>(net, call, in);
  add("y", forward.y);
  add("hn", forward.hn);
  add("cn", forward.cn);
  const auto back = reference::backward<Single>(
      net, call, forward.tape, {params.data(), d.dy.view(), d.dhn.view(), d.dcn.view()});
  add("dx", back.dx);
  add("dh0", back.dh0);
  add("dc0", back.dc0);
  add("dparams", back.dparams);
  return result;
}

TEST(Tolerance, HoldsPlainFloatArithmetic) {
  double worst = 0.0;
  for (const Case& c : some_cases(reduced() ? 50 : 5)) {
    if (c.spec.dtype == DType::kFloat64) continue;
    const Data d = make_data(c);
    const Agreement found = compare(bounds_of(c, d), run_single(c, d));
    EXPECT_EQ(found.failure, "") << c.text;
    worst = std::max(worst, found.worst);
  }
  // Bounds that nothing comes near would prove nothing.
  EXPECT_GT(worst, 0.05);
}

TEST(Tolerance, HoldsTheOtherArithmetics) {
  double worst = 0.0;
  for (const Case& c : some_arithmetic_cases()) {
    const Data d = make_data(c);
    const Agreement found = compare(bounds_of(c, d), run_single(c, d));
    EXPECT_EQ(found.failure, "") << c.text;
    worst = std::max(worst, found.worst);
  }
  EXPECT_GT(worst, 0.05);
}

/// How much of its bound the error of a product of math 'bf16x3' takes.
double split_share(double a, double b) {
  const double a_high = reference::as_bf16(a), b_high = reference::as_bf16(b);
  const double a_low = reference::as_bf16(a - a_high), b_low = reference::as_bf16(b - b_high);
  const double found = a_high * b_high + a_high * b_low + a_low * b_high;
  return std::abs(found - a * b) / (as_split(Bounded(a)) * as_split(Bounded(b))).error();
}

TEST(Tolerance, OfASplitProductIsReachedAndNotPassed) {
  Bounded::rounding = {};  // of the split alone
  double worst = 0.0;
  // Both rests just below half a step, where hi and lo round down by the most.
  for (double a = 1.0; a < 1.02; a += 0x1.1p-16) {
    for (int k = 0; k < 64; ++k)
      worst = std::max(worst, split_share(a, 1.0 + 0x1p-8 - k * 0x1p-19));
  }
  RandomStream random(7, 1);
  for (int n = 0; n < 300000; ++n) {
    const auto a = static_cast<float>(random.uniform(-2.0, 2.0));
    const auto b = static_cast<float>(random.uniform(-2.0, 2.0));
    worst = std::max(worst, split_share(static_cast<double>(a), static_cast<double>(b)));
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_GT(worst, 0.95);
}

TEST(Tolerance, TellsOneArithmeticFromAnother) {
  for (const std::string text : {"lstm L2 U17 I3 B5 T4 bi f32 ", "gru L1 U33 I7 B3 T5 f32 "}) {
    for (const char* arithmetic : {"bf16", "stored_int8", "stored_bfloat16", "stored_float16"}) {
      const Case c = parse_case(text + arithmetic, "the_arithmetic_left_out");
      const Data d = make_data(c);
      Case plain = c;
      plain.spec.compute.math = Math::kFloat32;
      plain.spec.compute.weights_dtype = WeightsDType::kNone;
      const Result other = run_all(reference_engine(), plain, d);
      EXPECT_NE(compare(bounds_of(c, d), other).failure, "") << c.text;
    }
  }
}

TEST(Tolerance, HoldsTheReferenceItself) {
  std::vector<Case> cases = odd_cases();
  for (const Case& c : some_arithmetic_cases()) cases.push_back(c);
  for (const Case& c : cases) {
    const Data d = make_data(c);
    const Agreement found = compare(bounds_of(c, d), run_all(reference_engine(), c, d));
    EXPECT_EQ(found.failure, "") << c.text;
  }
}

TEST(Tolerance, FindsOneWrongParameter) {
  const Case c = parse_case("lstm L2 U17 I3 B5 T4 bi f32", "a_network_of_usual_size");
  const Data d = make_data(c);
  const Bounds bounds = bounds_of(c, d);
  for (const std::int64_t wrong : {std::int64_t{0}, params_size(c.spec) - 1}) {
    Data moved = d;
    // A ten-thousandth: far less than any mistaken formula.
    moved.params.as<float>()[static_cast<std::size_t>(wrong)] += 1e-4f;
    const Agreement found = compare(bounds, run_all(reference_engine(), c, moved));
    EXPECT_NE(found.failure, "") << "parameter " << wrong;
  }
}

TEST(Tolerance, FindsNotANumber) {
  const Case c = parse_case("gru L1 U3 I3 B2 T3 f32", "small");
  const Data d = make_data(c);
  const Bounds bounds = bounds_of(c, d);
  Result result = run_all(reference_engine(), c, d);
  EXPECT_EQ(compare(bounds, result).failure, "");
  result.parts[0].second.as<float>()[4] = std::nanf("");
  EXPECT_NE(compare(bounds, result).failure, "");
}

}  // namespace
}  // namespace openrnn::conformance
