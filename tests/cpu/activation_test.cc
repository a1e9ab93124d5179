// exp, tanh and sigmoid against double precision: every float32, and samples of float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "cpu/gemm/gemm.h"
#include "cpu/isa/isa.h"
#include "cpu/kernels/kernels.h"
#include "cpu/threading/subnormals.h"

namespace openrnn::cpu {
namespace {

constexpr std::int64_t kBatch = 4096;

struct Worst {
  double ulps = 0;
  float at = 0;
};

// Distance in units of float's last place, by bits alone so that the compiler can vectorize it.
// Results below the smallest normal float count as 0.
double float_ulps(float got, double want) {
  const double least = 0x1p-126;
  const auto exponent = std::bit_cast<std::uint64_t>(want) & 0x7FF0000000000000u;
  // 23 places below the leading bit of `want`.
  const double unit = std::bit_cast<double>(exponent - (std::uint64_t{23} << 52));
  const double error = std::fabs(static_cast<double>(got) - want) / unit;
  const bool tiny = std::fabs(want) < least * (1 + 0x1p-20);
  const bool small = std::fabs(static_cast<double>(got)) < least * (1 + 0x1p-19);
  return tiny ? (small ? 0.0 : HUGE_VAL) : error;
}

// Every `stride`-th pattern of bits in [first, last) against the same function in float64.
Worst worst_of(int function, std::uint64_t first, std::uint64_t last, std::uint64_t stride) {
  const FlushSubnormals flush;
  const KernelTable& table = kernels();
  std::vector<float> x(kBatch), y(kBatch);
  std::vector<double> wide(kBatch), want(kBatch);
  Worst worst;
  for (std::uint64_t bits = first; bits < last; bits += stride * kBatch) {
    const auto left = static_cast<std::int64_t>((last - bits + stride - 1) / stride);
    const std::int64_t count = std::min(kBatch, left);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto pattern =
          static_cast<std::uint32_t>(bits + static_cast<std::uint64_t>(i) * stride);
      x[i] = std::bit_cast<float>(pattern);
      wide[i] = static_cast<double>(x[i]);
    }
    table.f32[kExact].math[function](x.data(), y.data(), count);
    table.f64.math[function](wide.data(), want.data(), count);
    double most = 0;
    for (std::int64_t i = 0; i < count; ++i) most = std::max(most, float_ulps(y[i], want[i]));
    if (most <= worst.ulps) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (float_ulps(y[i], want[i]) == most) worst = {most, x[i]};
    }
  }
  return worst;
}

// Finite inputs: of exp only those whose result is finite.
std::uint64_t last_pattern(int function, bool negative) {
  const float limit =
      function == kMathExp && !negative ? 88.72f : std::numeric_limits<float>::max();
  return std::bit_cast<std::uint32_t>(limit) + 1ull;
}

void expect_every_float(int function, std::uint64_t stride) {
  for (const bool negative : {false, true}) {
    const std::uint64_t sign = negative ? 0x80000000u : 0;
    const std::uint64_t last = last_pattern(function, negative);
    Worst halves[2];
    std::thread other(
        [&] { halves[1] = worst_of(function, sign + last / 2, sign + last, stride); });
    halves[0] = worst_of(function, sign, sign + last / 2, stride);
    other.join();
    for (const Worst& worst : halves) {
      EXPECT_LE(worst.ulps, 2.0) << "function " << function << " at " << std::hexfloat << worst.at;
    }
  }
}

class ForcedIsa {
 public:
  explicit ForcedIsa(std::string_view name) : old_(isa_name()) { force_isa(name); }
  ~ForcedIsa() { force_isa(old_); }

 private:
  std::string_view old_;
};

TEST(ActivationTest, EveryFloatIsWithinTwoUlp) {
  // All instruction sets do the same operations, so one of them visits every number.
  const bool reduced = std::getenv("OPENRNN_TEST_REDUCED") != nullptr || isa_name() == "scalar";
  for (int f = 0; f < kMathFunctions; ++f) expect_every_float(f, reduced ? 9973 : 1);
}

// Bits of results for inputs of all sizes and signs, and the special ones.
template <class T>
std::vector<T> results(int function) {
  std::vector<T> x = {T(0), -T(0), std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity()};
  RandomStream random(5);
  for (int i = 0; i < 20000; ++i) {
    const double magnitude =
        std::ldexp(random.uniform(1, 2), static_cast<int>(random.below(40)) - 30);
    x.push_back(static_cast<T>(random.uniform() < 0.5 ? magnitude : -magnitude));
  }
  std::vector<T> y(x.size());
  apply(static_cast<Unary>(function), kDTypeOf<T>, x.data(), y.data(),
        static_cast<std::int64_t>(x.size()));
  return y;
}

TEST(ActivationTest, InstructionSetsAgreeInEveryBit) {
  for (int f = 0; f < kMathFunctions; ++f) {
    const ForcedIsa scalar("scalar");
    const auto f32 = results<float>(f);
    const auto f64 = results<double>(f);
    for (const std::string_view isa : available_isas()) {
      const ForcedIsa forced(isa);
      EXPECT_EQ(results<float>(f), f32) << isa << " function " << f;
      EXPECT_EQ(results<double>(f), f64) << isa << " function " << f;
    }
  }
}

long double exact(int function, long double x) {
  if (function == kMathExp) return std::exp(x);
  if (function == kMathTanh) return std::tanh(x);
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

TEST(ActivationTest, SampledDoublesAreWithinTwoUlp) {
  RandomStream random(11);
  for (int f = 0; f < kMathFunctions; ++f) {
    std::vector<double> x, y;
    for (int i = 0; i < 400000; ++i) {
      const double range = i % 3 == 0 ? 1.2 : i % 3 == 1 ? 20 : 700;
      x.push_back(random.uniform(-range, range));
    }
    y.resize(x.size());
    apply(static_cast<Unary>(f), DType::kFloat64, x.data(), y.data(),
          static_cast<std::int64_t>(x.size()));
    long double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double want = exact(f, x[i]);
      const long double unit = std::ldexp(1.0L, std::ilogb(want) - 52);
      worst = std::max(worst, std::fabs(y[i] - want) / unit);
    }
    EXPECT_LE(worst, 2.0L) << "function " << f;
  }
}

TEST(ActivationTest, SpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double x[] = {infinity, -infinity, 0.0, -0.0, 1e300, -1e300, NAN};
  const double want[3][6] = {
      {infinity, 0, 1, 1, infinity, 0}, {1, -1, 0, -0.0, 1, -1}, {1, 0, 0.5, 0.5, 1, 0}};
  for (const std::string_view isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (int f = 0; f < kMathFunctions; ++f) {
      double y[7];
      apply(static_cast<Unary>(f), DType::kFloat64, x, y, 7);
      float narrow[7], z[7];
      std::copy(x, x + 7, narrow);
      apply(static_cast<Unary>(f), DType::kFloat32, narrow, z, 7);
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(y[i], want[f][i]) << isa << " function " << f << " of " << x[i];
        EXPECT_EQ(static_cast<double>(z[i]), want[f][i])
            << isa << " function " << f << " of " << x[i];
        EXPECT_EQ(std::signbit(y[i]), std::signbit(want[f][i]));
      }
      EXPECT_TRUE(std::isnan(y[6]) && std::isnan(z[6])) << isa << " function " << f;
    }
  }
}

TEST(ActivationTest, OtherDtypesAreRefused) {
  std::int32_t x = 1;
  try {
    apply(Unary::kExp, DType::kInt32, &x, &x, 1);
    FAIL() << "int32 was taken";
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "[apply] dtype is int32, expected float32 or float64");
  }
}

}  // namespace
}  // namespace openrnn::cpu
