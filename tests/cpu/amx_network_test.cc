// Networks in the arithmetics of AMX: the same bits whatever the threads, the other rows and the
// cuts; near float32; on a machine that has AMX the bits of the emulation.
#include <gtest/gtest.h>

#include <limits>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/parts.h"
#include "cpu/support/amx_model.h"

namespace openrnn::conformance {
namespace {

using cpu::has_emulation;
using cpu::kNoEmulation;

constexpr std::array kTexts = {
    "lstm L2 U17 I33 B7 T4 f32 lengths", "gru L2 U33 I7 B1 T3 bi f32",
    "rnn_tanh L1 U3 I130 B16 T3 f32",    "rnn_relu L2 U130 I1 B3 T2 f32 lengths",
    "lstm L2 U17 I5 B33 T4 P15 bi f32",  "gru L1 U16 I16 B33 T3 skip f32",
    "lstm L1 U66 I15 B2 T5 f16",         "gru L1 U15 I3 B15 T7 f16 lengths",
    "lstm L1 U1 I1 B1 T1 f32",           "lstm L1 U130 I130 B70 T2 f32 lengths",
    "gru L1 U130 I17 B70 T2 bi f32",     "rnn_tanh L2 U33 I7 B17 T3 bi f32 lengths",
    "lstm L2 U7 I3 B17 T4 clip f32",     "lstm L1 U33 I7 B16 T3 batch_major f32",
    "lstm L2 U17 I5 B7 T4 D0.5 f32",     "rnn_relu L1 U64 I64 B32 T2 bi f32"};

// 4 U elements of backward are more than two blocks of an L2 of 1 MB.
constexpr const char* kWide = "lstm L1 U1100 I3 B14 T2 f32";

struct AmxCase {
  const char* text;
  Math math;
};

std::vector<AmxCase> amx_cases() {
  std::vector<AmxCase> cases;
  for (const Math math : {Math::kBf16, Math::kBf16x3}) {
    for (const char* text : kTexts) cases.push_back({text, math});
    cases.push_back({kWide, math});
  }
  return cases;
}

void PrintTo(const AmxCase& at, std::ostream* out) { *out << at.text << " " << to_string(at.math); }

class AmxNetwork : public testing::TestWithParam<AmxCase> {
 protected:
  void SetUp() override {
    if (!has_emulation()) GTEST_SKIP() << kNoEmulation;
    case_ = parse_case(GetParam().text, "");
    case_.spec.compute.math = GetParam().math;
    data_ = make_data(case_);
  }
  Result run(std::string_view isa, int threads) const {
    const ForcedIsa forced(isa);
    const ForcedThreads on(threads);
    EXPECT_EQ(cpu().math_kind(case_.spec),
              case_.spec.compute.math == Math::kBf16 ? "amx" : "bf16x3");
    return run_all(cpu(), case_, data_);
  }
  bool is_wide() const { return GetParam().text == kWide; }

  Case case_;
  Data data_;
};

TEST_P(AmxNetwork, HasTheSameBitsOnAnyThreads) {
  const Result one = run("amx_emulated", 1);
  for (const int threads : {2, 3}) {
    EXPECT_EQ(first_difference(one, run("amx_emulated", threads)), "") << threads;
  }
}

TEST_P(AmxNetwork, HasTheSameBitsInRowsAlone) {
  if (case_.spec.draws_masks()) GTEST_SKIP() << "masks belong to places in the batch";
  const Result whole = run("amx_emulated", 2);
  const ForcedIsa forced("amx_emulated");
  for (std::int64_t b = 0; b < case_.batch; b += is_wide() || case_.batch > 20 ? 13 : 1) {
    const Case row = row_case(case_, b);
    const Result alone = run_all(cpu(), row, row_data(case_, data_, b));
    ASSERT_EQ(first_difference(row_result(case_, whole, b), row_result(row, alone, 0)), "") << b;
  }
}

TEST_P(AmxNetwork, HasTheSameBitsInTwoCalls) {
  const RnnSpec& s = case_.spec;
  if (s.direction != Direction::kUnidirectional || s.draws_masks() || !case_.lengths.empty() ||
      case_.time < 2) {
    GTEST_SKIP() << "not promised, or nothing to cut";
  }
  const ForcedIsa forced("amx_emulated");
  const Result whole = run_inference(cpu(), case_, data_);
  Case first = case_, second = case_;
  first.time = 1;
  second.time = case_.time - 1;
  Data d1 = data_, d2 = data_;
  d1.x = take(data_.x, time_cut(case_, s.input_size, 0, 1));
  d2.x = take(data_.x, time_cut(case_, s.input_size, 1, second.time));
  const Result one = run_inference(cpu(), first, d1);
  d2.h0 = take(one["inference hn"], {1, 1, case_.h_size(), 0, 1});
  d2.c0 = take(one["inference cn"], {1, 1, case_.c_size(), 0, 1});
  const Result two = run_inference(cpu(), second, d2);
  Result tail;
  tail.parts.emplace_back(
      "y", take(whole["inference y"], time_cut(case_, s.output_size(), 1, second.time)));
  EXPECT_EQ(first_difference(tail, two), "");
}

// |a - b| / |b| in the second norm, of one part.
double distance(const Array& a, const Array& b) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = element(a.view(), i), y = element(b.view(), i);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

TEST_P(AmxNetwork, IsNearFloat32) {
  const Result got = run("amx_emulated", 2);
  Case plain = case_;
  plain.spec.compute.math = Math::kFloat32;
  const Result want = run_all(cpu(), plain, data_);
  EXPECT_NE(first_difference(want, got), "");
  // A bfloat16 is off by up to 2^-9, a pair of them by 2^-17, float16 results by 2^-11; steps,
  // layers and gradients add theirs. A kink of relu passed over costs one gradient of many.
  const bool bf16 = case_.spec.compute.math == Math::kBf16,
             half = case_.spec.dtype == DType::kFloat16;
  const double limit = bf16 ? 0x1p-5 : half ? 0x1p-8 : 0x1p-14;
  for (std::size_t i = 0; i < want.parts.size(); ++i) {
    const auto& [name, values] = want.parts[i];
    if (values.size() == 0) continue;
    EXPECT_LT(distance(got.parts[i].second, values), limit) << name;
  }
}

TEST_P(AmxNetwork, OnAmxHasTheBitsOfTheEmulation) {
  const auto isas = available_cpu_isas();
  if (std::find(isas.begin(), isas.end(), "amx") == isas.end()) {
    GTEST_SKIP() << "this processor, or its operating system, lacks AMX";
  }
  const Result expected = run("amx_emulated", 1);
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(first_difference(expected, run("amx", threads)), "") << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AmxNetwork, testing::ValuesIn(amx_cases()));

TEST(AmxIsa, EmulationRunsOnlyWhenForced) {
  const auto isas = available_cpu_isas();
  EXPECT_EQ(std::count(isas.begin(), isas.end(), "amx_emulated"), 0);
  if (!has_emulation()) {
    EXPECT_THROW(force_cpu_isa("amx_emulated"), EngineError);
    GTEST_SKIP() << kNoEmulation;
  }
  const RnnSpec spec{.num_units = 3, .input_size = 2, .compute = {.math = Math::kBf16}};
  {
    const ForcedIsa forced("avx512");
    EXPECT_EQ(cpu().math_kind(spec), "dot");
  }
  const ForcedIsa forced("amx_emulated");
  EXPECT_EQ(cpu_isa(), "amx_emulated");
  EXPECT_EQ(cpu().math_kind(spec), "amx");
}

// Under bf16x3 a row with such an input goes on as in float32, and touches no other row.
TEST(Bf16x3Networks, TakeStrangeInputs) {
  if (!has_emulation()) GTEST_SKIP() << kNoEmulation;
  const ForcedIsa forced("amx_emulated");
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* text : {"lstm L1 U17 I33 B20 T3 f32", "gru L1 U33 I40 B20 T3 f32",
                           "rnn_tanh L1 U16 I33 B20 T3 f32", "rnn_relu L1 U16 I33 B20 T3 f32"}) {
    Case c = parse_case(text, "");
    c.spec.compute.math = Math::kBf16x3;
    Data d = make_data(c);
    const Result clean = run_all(cpu(), c, d);
    auto x = d.x.as<float>();
    const auto at = [&](std::int64_t row, std::int64_t i) -> float& {
      return x[static_cast<std::size_t>((c.batch + row) * c.spec.input_size + i)];
    };
    at(1, 32) = std::nanf("");
    at(2, 0) = infinity;
    at(3, 7) = -infinity;
    at(18, 5) = 0x1p127f;
    at(18, 6) = -0x1.8p126f;
    const Result got = run_all(cpu(), c, d);
    Case plain = c;
    plain.spec.compute.math = Math::kFloat32;
    const Result want = run_all(cpu(), plain, d);
    for (std::int64_t b = 0; b < c.batch; ++b) {
      const Result row = row_result(c, got, b);
      if (b == 0 || (b > 3 && b != 18)) {
        EXPECT_EQ(first_difference(row_result(c, clean, b), row), "") << text << " row " << b;
        continue;
      }
      const Result as_float = row_result(c, want, b);
      for (const char* name : {"y", "hn", "dx", "dh0"}) {
        for (std::int64_t i = 0; i < row[name].size(); ++i) {
          const double a = element(row[name].view(), i), e = element(as_float[name].view(), i);
          EXPECT_EQ(std::isnan(a), std::isnan(e)) << text << " " << name << b << " " << i;
          if (std::isnan(e)) continue;
          if (std::isinf(e)) {
            EXPECT_EQ(a, e) << text << " " << name << b << " " << i;
          } else {
            EXPECT_NEAR(a, e, 1e-4 * std::max(1.0, std::abs(e))) << text << " " << name << b;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
