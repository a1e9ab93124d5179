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

}  // namespace

Half to_half(double value) noexcept {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000u);
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF);
  if (exponent == 0x7FF) {
    // A NaN keeps its upper payload bits and becomes quiet.
    const auto payload = static_cast<std::uint16_t>(fraction ? 0x200u | (fraction >> 42) : 0u);
    return {static_cast<std::uint16_t>(sign | 0x7C00u | payload)};
  }
  const int half_exponent = exponent - 1023 + 15;
  if (half_exponent >= 31) return {static_cast<std::uint16_t>(sign | 0x7C00u)};
  const std::uint64_t significand = fraction | (exponent ? std::uint64_t{1} << 52 : 0);
  // A carry out of the fraction moves into the exponent, which is what rounding up asks for.
  if (half_exponent > 0) {
    const std::uint64_t rounded = shift_round(significand, 42);
    return {static_cast<std::uint16_t>(sign + ((static_cast<unsigned>(half_exponent) - 1u) << 10) +
                                       rounded)};
  }
  return {static_cast<std::uint16_t>(sign + shift_round(significand, 43 - half_exponent))};
}

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

}  // namespace openrnn
