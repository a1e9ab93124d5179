#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "openrnn/base.h"

namespace openrnn {
namespace {

/// The value of a half by its definition: sign, exponent and fraction.
double value_of(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryOneWidensToItsValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = value_of(half);
    const float found = to_float(Half{half});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(found), expected) << bits;
    }
    ASSERT_EQ(std::signbit(found), bits >= 0x8000) << bits;
  }
}

TEST(Half, EveryOneComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(half);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(to_float(to_half(wide)))) << bits;
      ASSERT_TRUE(std::isnan(to_float(to_half(static_cast<double>(wide))))) << bits;
    } else {
      ASSERT_EQ(to_half(wide).bits, bits);
      ASSERT_EQ(to_half(static_cast<double>(wide)).bits, bits);
    }
  }
}

/// Both sides of the tie between every two adjacent numbers, and the tie itself, which goes to the
/// even.
TEST(Half, RoundsToNearestEvenBetweenEveryTwo) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits));
    // Above the largest there is the place where the next would be, and it stands for infinity.
    const double high = bits == 0x7BFF ? 65536.0 : value_of(static_cast<std::uint16_t>(bits + 1));
    const double tie = 0.5 * (low + high);
    const std::uint32_t even = bits % 2 ? bits + 1 : bits;
    for (const double sign : {1.0, -1.0}) {
      const std::uint32_t flag = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(to_half(sign * tie).bits, even | flag);
      ASSERT_EQ(to_half(sign * std::nextafter(tie, 0.0)).bits, bits | flag);
      ASSERT_EQ(to_half(sign * std::nextafter(tie, HUGE_VAL)).bits, (bits + 1) | flag);
      const auto narrow = static_cast<float>(tie);
      ASSERT_EQ(static_cast<double>(narrow), tie) << "a tie of halves is a float";
      ASSERT_EQ(to_half(static_cast<float>(sign) * narrow).bits, even | flag);
    }
  }
}

TEST(Half, RoundsOnceFromDouble) {
  // Through float it would first fall on the tie, and from there to the even number below.
  const double just_above = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(to_half(just_above).bits, 0x3C01);
  EXPECT_EQ(to_half(static_cast<float>(just_above)).bits, 0x3C00);
}

TEST(Half, TakesExtremes) {
  EXPECT_EQ(to_half(65519.99).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.0).bits, 0x7C00);
  EXPECT_EQ(to_half(0x1.8p16).bits, 0x7C00);
  EXPECT_EQ(to_half(-0x1.004p16).bits, 0xFC00);
  EXPECT_EQ(to_bfloat16(0x1.8p128).bits, 0x7F80);
  EXPECT_EQ(to_half(1e300).bits, 0x7C00);
  EXPECT_EQ(to_half(-HUGE_VAL).bits, 0xFC00);
  EXPECT_EQ(to_half(0x1p-25).bits, 0);
  EXPECT_EQ(to_half(0x1.8p-25).bits, 1);
  EXPECT_EQ(to_half(-1e-300).bits, 0x8000);
  EXPECT_EQ(to_half(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(to_half(-0.0).bits, 0x8000);
}

// A NaN keeps its sign and the upper bits of its payload, and is quiet.
TEST(Half, ANanKeepsItsPayload) {
  for (const std::uint16_t payload : {0x001, 0x155, 0x1FF, 0x200, 0x3FF}) {
    for (const std::uint16_t sign : {0, 0x8000}) {
      const auto given = static_cast<std::uint16_t>(sign | 0x7C00 | payload);
      const std::uint64_t wide =
          std::uint64_t{sign} << 48 | 0x7FF0000000000000U | std::uint64_t{payload} << 42;
      EXPECT_EQ(to_half(std::bit_cast<double>(wide)).bits, given | 0x200);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(to_float(Half{given})),
                std::uint32_t{sign} << 16 | 0x7F800000U | std::uint32_t{payload} << 13);
    }
  }
  // One whose payload lies below all that a half has stays a NaN.
  EXPECT_EQ(to_half(std::bit_cast<double>(std::uint64_t{0x7FF0000000000001U})).bits, 0x7E00);
}

}  // namespace
}  // namespace openrnn
