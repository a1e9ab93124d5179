// float16 and bfloat16 as bits.
#include <bit>

#include "openrnn/base.h"

namespace openrnn {
namespace {

// Rounds a significand `bits` (with its hidden bit) right by `shift`, to nearest even.
std::uint64_t shift_round(std::uint64_t bits, int shift) {
  if (shift > 63) return 0;
  const std::uint64_t kept = bits >> shift;
  const std::uint64_t rest = bits & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

// The 16 bits of a number of so many exponent and fraction bits.
template <int kExponent, int kFraction>
std::uint16_t narrowed(double value) {
  constexpr unsigned kMost = (1u << kExponent) - 1, kInfinity = kMost << kFraction;
  constexpr int kBias = (1 << (kExponent - 1)) - 1, kDropped = 52 - kFraction;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<unsigned>((bits >> 48) & 0x8000u);
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
  const int wide_exponent = static_cast<int>((bits >> 52) & 0x7FF);
  if (wide_exponent == 0x7FF) {
    // A NaN keeps its upper payload bits and becomes quiet.
    constexpr std::uint64_t kQuiet = std::uint64_t{1} << (kFraction - 1);
    const auto payload = static_cast<unsigned>(fraction ? kQuiet | (fraction >> kDropped) : 0u);
    return static_cast<std::uint16_t>(sign | kInfinity | payload);
  }
  const int exponent = wide_exponent - 1023 + kBias;
  if (exponent >= static_cast<int>(kMost)) return static_cast<std::uint16_t>(sign | kInfinity);
  const std::uint64_t significand = fraction | (wide_exponent ? std::uint64_t{1} << 52 : 0);
  // A carry out of the fraction moves into the exponent, which is what rounding up asks for.
  if (exponent > 0) {
    const std::uint64_t rounded = shift_round(significand, kDropped);
    return static_cast<std::uint16_t>(sign + ((static_cast<unsigned>(exponent) - 1u) << kFraction) +
                                      rounded);
  }
  return static_cast<std::uint16_t>(sign + shift_round(significand, kDropped + 1 - exponent));
}

}  // namespace

Half to_half(double value) noexcept { return {narrowed<5, 10>(value)}; }

Half to_half(float value) noexcept { return to_half(static_cast<double>(value)); }

float to_float(Half value) noexcept {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31u;
  const std::uint32_t fraction = value.bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {
    // 2^-24 is one unit of a subnormal half, and exact in float.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

Bfloat16 to_bfloat16(double value) noexcept { return {narrowed<8, 7>(value)}; }

}  // namespace openrnn
