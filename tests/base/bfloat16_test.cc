#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "openrnn/base.h"

namespace openrnn {
namespace {

constexpr std::uint32_t kInfinity = 0x7F80;

/// The value of a bfloat16 by its definition: sign, exponent and fraction.
double value_of(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 7) & 255;
  const int fraction = bits & 127;
  if (exponent == 255) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -133);
  return sign * std::ldexp(128 + fraction, exponent - 134);
}

TEST(Bfloat16, EveryOneWidensToItsValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto brain = static_cast<std::uint16_t>(bits);
    const double expected = value_of(brain);
    const float found = to_float(Bfloat16{brain});
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(found), expected) << bits;
    }
    ASSERT_EQ(std::signbit(found), bits >= 0x8000) << bits;
  }
}

// A NaN keeps its sign and payload, and is quiet.
TEST(Bfloat16, EveryOneComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = to_float(Bfloat16{static_cast<std::uint16_t>(bits)});
    const std::uint32_t expected = std::isnan(wide) ? bits | 0x40 : bits;
    ASSERT_EQ(to_bfloat16(wide).bits, expected);
    ASSERT_EQ(to_bfloat16(static_cast<double>(wide)).bits, expected);
  }
}

/// Both sides of the tie between every two adjacent numbers, and the tie itself, which goes to the
/// even; in double and, where a tie is the float between two others, in float.
TEST(Bfloat16, RoundsToNearestEvenBetweenEveryTwo) {
  for (std::uint32_t bits = 0; bits < kInfinity; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits));
    // Above the largest there is the place where the next would be, and it stands for infinity.
    const double high =
        bits == kInfinity - 1 ? 0x1p128 : value_of(static_cast<std::uint16_t>(bits + 1));
    const double tie = 0.5 * (low + high);
    const std::uint32_t even = bits % 2 ? bits + 1 : bits;
    for (const double sign : {1.0, -1.0}) {
      const std::uint32_t flag = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(to_bfloat16(sign * tie).bits, even | flag);
      ASSERT_EQ(to_bfloat16(sign * std::nextafter(tie, 0.0)).bits, bits | flag);
      ASSERT_EQ(to_bfloat16(sign * std::nextafter(tie, HUGE_VAL)).bits, (bits + 1) | flag);
      const auto narrow = static_cast<float>(tie);
      ASSERT_EQ(static_cast<double>(narrow), tie) << "a tie of two is a float";
      const auto s = static_cast<float>(sign);
      ASSERT_EQ(to_bfloat16(s * narrow).bits, even | flag);
      ASSERT_EQ(to_bfloat16(s * std::nextafter(narrow, 0.0F)).bits, bits | flag);
      ASSERT_EQ(to_bfloat16(s * std::nextafter(narrow, HUGE_VALF)).bits, (bits + 1) | flag);
    }
  }
}

TEST(Bfloat16, RoundsOnceFromDouble) {
  // Through float it would first fall on the tie, and from there to the even number below.
  const double just_above = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(to_bfloat16(just_above).bits, 0x3F81);
  EXPECT_EQ(to_bfloat16(static_cast<float>(just_above)).bits, 0x3F80);
}

TEST(Bfloat16, TakesExtremes) {
  EXPECT_EQ(to_bfloat16(1e300).bits, kInfinity);
  EXPECT_EQ(to_bfloat16(-HUGE_VAL).bits, 0xFF80);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, kInfinity);
  EXPECT_EQ(to_bfloat16(0x1p-134).bits, 0);
  EXPECT_EQ(to_bfloat16(0x1.8p-134).bits, 1);
  EXPECT_EQ(to_bfloat16(-1e-300).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(to_bfloat16(-0.0).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(-0.0F).bits, 0x8000);
}

}  // namespace
}  // namespace openrnn
