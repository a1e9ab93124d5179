// Arithmetic by choice: the same bits on every instruction set, and what each is equal to.
#include <gtest/gtest.h>

#include <bit>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/parts.h"

namespace openrnn::conformance {
namespace {

constexpr std::array kTexts = {
    "lstm L2 U17 I33 B7 T4 f32 lengths", "gru L2 U33 I7 B1 T3 bi f32",
    "rnn_tanh L1 U3 I130 B16 T3 f32",    "rnn_relu L2 U130 I1 B3 T2 f32 lengths",
    "lstm L2 U17 I5 B7 T4 P16 bi f32",   "gru L1 U16 I16 B33 T3 skip f32",
    "lstm L1 U66 I15 B2 T5 f16",         "gru L1 U1 I1 B15 T7 f16 lengths",
    "lstm L1 U1 I1 B1 T1 f32",           "lstm L1 U130 I300 B200 T2 f32"};

Case case_of(const char* text, Math math, WeightsDType stored) {
  Case c = parse_case(text, "");
  c.spec.compute.math = math;
  c.spec.compute.weights_dtype = stored;
  return c;
}

Result run(const Case& c, const Data& d, std::string_view isa, int threads) {
  const ForcedIsa forced(isa);
  const ForcedThreads on(threads);
  return c.spec.compute.weights_dtype == WeightsDType::kNone ? run_all(cpu(), c, d)
                                                             : run_inference(cpu(), c, d);
}

void expect_equal_everywhere(const Case& c) {
  const Data d = make_data(c);
  const Result expected = run(c, d, "scalar", 1);
  for (const std::string_view isa : available_cpu_isas()) {
    const ForcedIsa forced(isa);
    // bfloat16 is another function there.
    if (cpu().math_kind(c.spec) == "amx" || cpu().math_kind(c.spec) == "bf16x3") continue;
    for (const int threads : {1, 2, 3}) {
      EXPECT_EQ(first_difference(expected, run(c, d, isa, threads)), "")
          << c.text << " " << to_string(c.spec.compute.math) << " "
          << to_string(c.spec.compute.weights_dtype) << " on " << isa << " with " << threads
          << " threads";
    }
  }
}

TEST(Arithmetic, HasTheSameBitsOnEveryInstructionSet) {
  for (const char* text : kTexts) {
    expect_equal_everywhere(case_of(text, Math::kBf16, WeightsDType::kNone));
    for (const auto stored :
         {WeightsDType::kFloat16, WeightsDType::kBfloat16, WeightsDType::kInt8}) {
      expect_equal_everywhere(case_of(text, Math::kFloat32, stored));
    }
  }
}

float as_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}

/// The same call with every weight (not the biases) rounded.
Data with_rounded_weights(const Case& c, const Data& d, WeightsDType stored) {
  Data rounded = d;
  auto* params = static_cast<float*>(rounded.params.data());
  const ParamsLayout layout(c.spec);
  for (const ParamRegion& region : layout.weights()) {
    for (std::int64_t i = 0; i < region.rows * region.cols; ++i) {
      float& weight = params[region.offset + i];
      weight = stored == WeightsDType::kFloat16 ? to_float(to_half(weight)) : as_bf16(weight);
    }
  }
  return rounded;
}

TEST(Arithmetic, StoredWeightsAreFloat32OfRoundedWeights) {
  for (const char* text : kTexts) {
    for (const auto stored : {WeightsDType::kFloat16, WeightsDType::kBfloat16}) {
      const Case c = case_of(text, Math::kFloat32, stored);
      if (c.spec.dtype != DType::kFloat32) continue;
      const Data d = make_data(c);
      Case plain = c;
      plain.spec.compute.weights_dtype = WeightsDType::kNone;
      const Data rounded = with_rounded_weights(c, d, stored);
      EXPECT_EQ(first_difference(run_inference(cpu(), plain, rounded), run_inference(cpu(), c, d)),
                "")
          << text << " " << to_string(stored);
    }
  }
}

TEST(Arithmetic, OthersAreNotFloat32) {
  for (const char* text : {"lstm L2 U17 I33 B7 T4 f32", "gru L1 U33 I7 B1 T3 f32"}) {
    const Case plain = case_of(text, Math::kFloat32, WeightsDType::kNone);
    const Data d = make_data(plain);
    const Result expected = run_inference(cpu(), plain, d);
    for (const auto stored :
         {WeightsDType::kFloat16, WeightsDType::kBfloat16, WeightsDType::kInt8}) {
      const Case c = case_of(text, Math::kFloat32, stored);
      EXPECT_NE(first_difference(expected, run_inference(cpu(), c, d)), "") << to_string(stored);
    }
    const Case c = case_of(text, Math::kBf16, WeightsDType::kNone);
    EXPECT_NE(first_difference(expected, run_inference(cpu(), c, d)), "") << "bf16";
  }
}

RnnSpec wide_int8(std::int64_t input_size) {
  RnnSpec spec;
  spec.mode = RnnMode::kRnnRelu;
  spec.num_units = 1;
  spec.input_size = input_size;
  spec.compute.weights_dtype = WeightsDType::kInt8;
  return spec;
}

TEST(Arithmetic, Int8SumsAreExactUpToWhatThirtyTwoBitsHold) {
  // Every product is 127 * 127, and the sum of the last the largest that an int32 holds.
  constexpr std::int64_t kMost = 133144;
  const RnnSpec spec = wide_int8(kMost);
  ASSERT_EQ(cpu().unsupported(spec), "");
  std::vector<float> params(static_cast<std::size_t>(params_size(spec)), 0.0f);
  std::fill_n(params.begin(), kMost, 1.0f);
  const std::vector<float> x(static_cast<std::size_t>(kMost), 1.0f);
  const float scale = 1.0f / 127.0f, sum = static_cast<float>(kMost * 127 * 127);
  for (const std::string_view isa : available_cpu_isas()) {
    const ForcedIsa forced(isa);
    float y = 0.0f;
    ForwardArgs args;
    args.params = cpu().pack(spec, {params.data(), DType::kFloat32, {params_size(spec)}},
                             PackFor::kInference);
    args.max_time = args.batch = 1;
    args.x = x.data();
    args.y = &y;
    cpu().forward(args);
    EXPECT_EQ(y, sum * (scale * scale)) << isa;
  }
}

// 127, -127 and what lies between, in an order that brings every pair of signs and sizes together.
int extreme(std::uint64_t i, std::uint64_t j) {
  constexpr std::array kValues = {127, -127, 127, -127, 126, -1, 0, -126};
  std::uint64_t mixed = (i * 0x9E3779B97F4A7C15u) ^ ((j + 1) * 0xC2B2AE3D27D4EB4Fu);
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9u;
  return kValues[(mixed >> 40) % kValues.size()];
}
// Value `of` of a row or a column, the first of which makes the scale 1 / 127.
int extreme_from(std::uint64_t i, std::uint64_t j) {
  return i == 0 ? (j % 2 == 0 ? 127 : -127) : extreme(i, j);
}

void expect_exact_int8(std::int64_t input_size, std::int64_t units, std::int64_t batch) {
  RnnSpec spec = wide_int8(input_size);
  spec.num_units = units;
  const auto i_size = static_cast<std::size_t>(input_size),
             b_size = static_cast<std::size_t>(batch);
  const auto u_size = static_cast<std::size_t>(units);
  std::vector<float> params(static_cast<std::size_t>(params_size(spec)), 0.0f);
  std::vector<float> x(b_size * i_size), expected(b_size * u_size), y(expected.size());
  for (std::size_t k = 0; k < i_size; ++k) {
    for (std::size_t u = 0; u < u_size; ++u) {
      params[u * i_size + k] = static_cast<float>(extreme_from(k, u)) / 127.0f;
    }
    for (std::size_t b = 0; b < b_size; ++b) {
      x[b * i_size + k] = static_cast<float>(extreme_from(k, 1000 + b)) / 127.0f;
    }
  }
  const float scale = 1.0f / 127.0f;
  for (std::size_t b = 0; b < b_size; ++b) {
    for (std::size_t u = 0; u < u_size; ++u) {
      int sum = 0;
      for (std::size_t k = 0; k < i_size; ++k) {
        sum += extreme_from(k, 1000 + b) * extreme_from(k, u);
      }
      expected[b * u_size + u] = std::max(0.0f, static_cast<float>(sum) * (scale * scale));
    }
  }
  ForwardArgs args;
  args.params =
      cpu().pack(spec, {params.data(), DType::kFloat32, {params_size(spec)}}, PackFor::kInference);
  args.max_time = 1;
  args.batch = batch;
  args.x = x.data();
  args.y = y.data();
  cpu().forward(args);
  EXPECT_EQ(y, expected) << "I" << input_size << " U" << units << " B" << batch << " on "
                         << cpu_isa();
}

// A pair of products that saturates 16 bits, a lost sign or a value beyond the last would show.
TEST(Arithmetic, Int8SumsAreExactAtTheExtremes) {
  for (const std::string_view isa : available_cpu_isas()) {
    const ForcedIsa forced(isa);
    for (std::int64_t input_size = 1; input_size <= 257; ++input_size) {
      if (input_size == 34) input_size = 255;
      // Tiles of every shape: columns of one vector to two panels, one row to several tiles.
      for (const std::int64_t units : {1, 17, 33, 130}) {
        for (const std::int64_t batch : {1, 2, 3, 5, 8}) {
          expect_exact_int8(input_size, units, batch);
        }
      }
    }
  }
}

/// Of one step of relu units without recurrent weights and biases.
std::vector<float> relu_of_int8(std::int64_t units, const std::vector<float>& weights,
                                const std::vector<float>& x) {
  RnnSpec spec = wide_int8(static_cast<std::int64_t>(weights.size()) / units);
  spec.num_units = units;
  const ParamsLayout layout(spec);
  Array params(DType::kFloat32, {params_size(spec)});
  std::copy(weights.begin(), weights.end(),
            params.as<float>().begin() + layout.weight(0, 0, ParamRole::kInputWeight, 0).offset);
  ForwardArgs args;
  args.params = cpu().pack(spec, params.view(), PackFor::kInference);
  args.max_time = 1;
  args.batch = static_cast<std::int64_t>(x.size()) / spec.input_size;
  std::vector<float> y(static_cast<std::size_t>(args.batch * units));
  args.x = x.data();
  args.y = y.data();
  cpu().forward(args);
  return y;
}

// The largest number of a row or column is 127, so that a step is 1.
TEST(Arithmetic, Int8TiesGoToTheEvenStep) {
  const std::vector<float> ties{0.5F,  1.5F,  2.5F,  3.5F,  125.5F,  126.5F,
                                -0.5F, -1.5F, -2.5F, -3.5F, -125.5F, -126.5F};
  std::vector<float> pairs, expected;
  for (const float tie : ties) {
    pairs.insert(pairs.end(), {127.0F, tie});
    expected.push_back(127.0F * (127.0F + std::nearbyint(tie)));
  }
  const std::vector<float> ones{127.0F, 127.0F};
  for (const std::string_view isa : available_cpu_isas()) {
    const ForcedIsa forced(isa);
    EXPECT_EQ(relu_of_int8(1, ones, pairs), expected) << isa << ", numbers";
    EXPECT_EQ(relu_of_int8(static_cast<std::int64_t>(ties.size()), pairs, ones), expected)
        << isa << ", weights";
  }
}

TEST(Arithmetic, Int8RefusesSumsThatCouldOverflow) {
  EXPECT_NE(cpu().unsupported(wide_int8(133145)).find("133144"), std::string::npos);
  EXPECT_EQ(choose_engine(wide_int8(133145)).name(), "reference");
}

}  // namespace
}  // namespace openrnn::conformance
