// Number types of kernels: float16 is stored as bits, computed in float.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cudnn/kernels/arguments.h"

namespace openrnn::gpu {

template <class To, class From>
__device__ inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

struct Half {
  std::uint16_t bits;
};

template <class T>
struct ComputeOfType {
  using Type = T;
};
template <>
struct ComputeOfType<Half> {
  using Type = float;
};
/// What T is computed in.
template <class T>
using ComputeOf = typename ComputeOfType<T>::Type;

__device__ inline float widen(float value) { return value; }
__device__ inline double widen(double value) { return value; }
__device__ inline float widen(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31u;
  const std::uint32_t fraction = value.bits & 0x3FFu;
  if (exponent == 31) {
    const std::uint32_t quiet = fraction ? 0x400000u : 0u;
    return bits_as<float>(sign | 0x7F800000u | quiet | (fraction << 13));
  }
  if (exponent == 0) {
    // 2^-24 is one unit of a subnormal half, and exact in float.
    return bits_as<float>(sign | bits_as<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
  }
  return bits_as<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

/// Rounds to nearest even.
__device__ inline Half to_half(float value) {
  const std::uint32_t bits = bits_as<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t half;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x477FF000u) {  // 65520 and above round to infinity
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal half
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // The unit of 0.5f is 2^-24, the smallest half, so this sum rounds as a subnormal half does.
    half = bits_as<std::uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3F000000u;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

/// Rounds once, straight from double.
__device__ inline Half to_half(double value) {
  const std::uint64_t bits = bits_as<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 48) & 0x8000u;
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFull;
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023 + 15;
  if (exponent == 0x7FF - 1023 + 15 && fraction != 0) {
    // A NaN keeps its upper payload bits and becomes quiet.
    return {static_cast<std::uint16_t>(sign | 0x7E00u | (fraction >> 42))};
  }
  if (exponent >= 31) return {static_cast<std::uint16_t>(sign | 0x7C00u)};
  // Bits that are rounded off: 42, more where the result is subnormal; beyond 54 nothing is left.
  const int shift = exponent > 0 ? 42 : 43 - exponent;
  if (shift > 54) return {static_cast<std::uint16_t>(sign)};
  const std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
  const std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
  // A carry out of the fraction increments the exponent, as rounding up requires.
  const std::uint64_t base = exponent > 0 ? static_cast<std::uint64_t>(exponent - 1) << 10 : 0;
  return {static_cast<std::uint16_t>(sign + base + rounded)};
}

template <class T>
__device__ inline T narrow(ComputeOf<T> value) {
  return value;
}
template <>
__device__ inline Half narrow<Half>(float value) {
  return to_half(value);
}

// The compiler flushes floats; a double below the smallest normal number is 0 here, as on the cpu
// device.
template <>
__device__ inline double narrow<double>(double value) {
  return fabs(value) < 0x1p-1022 ? value * 0.0 : value;
}

/// A number of one dtype from one of another, rounded once.
template <class To, class From>
struct Convert {
  __device__ static To of(From value) { return static_cast<To>(widen(value)); }
};
template <class From>
struct Convert<Half, From> {
  __device__ static Half of(From value) { return to_half(widen(value)); }
};
template <>
struct Convert<Half, Half> {
  __device__ static Half of(Half value) { return value; }
};

/// Calls f with a Half, a float or a double.
template <class F>
__device__ inline void with_number(Number number, const F& f) {
  if (number == Number::kHalf) {
    f(Half{});
  } else if (number == Number::kFloat) {
    f(float{});
  } else {
    f(double{});
  }
}

}  // namespace openrnn::gpu
