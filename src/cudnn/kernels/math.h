// exp, sigmoid, tanh and log: the operations of the cpu engine in its order, so the same bits.
// Errors are below 2 ulp.
#pragma once

#include <cmath>

#include "base/power.h"
#include "cudnn/kernels/number.h"

namespace openrnn::gpu {

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }

/// A polynomial by Horner's rule, the highest coefficient first.
template <class T>
__device__ inline T horner(T, T sum) {
  return sum;
}
template <class T, class... Rest>
__device__ inline T horner(T x, T sum, T next, Rest... rest) {
  return horner(x, fused(sum, x, next), rest...);
}

/// The magnitude of x with the sign of s.
__device__ inline float with_sign(float x, float s) { return copysignf(x, s); }
__device__ inline double with_sign(double x, double s) { return copysign(x, s); }

template <class T>
struct MathOf;

template <>
struct MathOf<float> {
  static constexpr float kLog2e = 0x1.715476p+0f;
  // ln2 = high + low: n * high is exact inside an fma.
  static constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c610p-29f;
  static constexpr float kShift = 0x1.8p23f;
  // exp(-kSmall) is below the smallest normal number; exp(x) overflows above kBig.
  static constexpr float kSmall = 88.0f, kBig = 0x1.62e42ep+6f, kLeast = 104.0f;
  // tanh(x) rounds to 1 from kTanhOne / 2 on.
  static constexpr float kTanhOne = 24.0f;
  static constexpr double kLeastNormal = 0x1p-126;
  /// 2^n from n + kShift: n is in the low bits.
  __device__ static float power(float shifted) {
    return bits_as<float>((bits_as<std::uint32_t>(shifted) << 23) + 0x3F800000u);
  }
  /// (exp(r) - 1 - r) / r^2 for |r| <= ln2 / 2.
  __device__ static float exp_tail(float r) {
    return horner(r, 0x1.6d113cp-10f, 0x1.120ba2p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f);
  }
  /// (tanh(x) / x - 1) / x^2 in z = x^2 up to 0.551^2.
  __device__ static float tanh_tail(float z) {
    return horner(z, -0x1.b0c3e8p-8f, 0x1.5d12f8p-6f, -0x1.b99f08p-5f, 0x1.110fe6p-3f,
                  -0x1.555554p-2f);
  }
};

template <>
struct MathOf<double> {
  static constexpr double kLog2e = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
  static constexpr double kShift = 0x1.8p52;
  static constexpr double kSmall = 709.0, kBig = 0x1.62e42fefa39efp+9, kLeast = 746.0;
  static constexpr double kTanhOne = 44.0;
  static constexpr double kLeastNormal = 0x1p-1022;
  __device__ static double power(double shifted) {
    return bits_as<double>((bits_as<std::uint64_t>(shifted) << 52) + 0x3FF0000000000000ull);
  }
  __device__ static double exp_tail(double r) {
    return horner(r, 0x1.1f731ea5352cap-29, 0x1.af4e196027428p-26, 0x1.27e4db57442fbp-22,
                  0x1.71de021a90822p-19, 0x1.a01a01a6dcaffp-16, 0x1.a01a01abef415p-13,
                  0x1.6c16c16c162ccp-10, 0x1.11111111100cep-7, 0x1.5555555555556p-5,
                  0x1.5555555555557p-3, 0.5);
  }
  __device__ static double tanh_tail(double z) {
    return horner(z, 0x1.0791c09edb524p-17, -0x1.1a9cd9ce828b6p-15, 0x1.8c7d0e9380c1ap-14,
                  -0x1.f418af11d5a26p-13, 0x1.35477c63db104p-11, -0x1.7da2587af0f6cp-10,
                  0x1.d6d3c5bf12a18p-9, -0x1.226e3538bb571p-7, 0x1.664f48822a1a2p-6,
                  -0x1.ba1ba1ba1a68bp-5, 0x1.1111111111109p-3, -0x1.5555555555555p-2);
  }
};

/// x = n ln2 + r; `shifted` holds n in its low bits, p = exp(r) - 1.
template <class T>
struct Reduced {
  T shifted, p;
};

template <class T>
__device__ inline Reduced<T> reduce(T x) {
  using M = MathOf<T>;
  const T shifted = fused(x, M::kLog2e, M::kShift);
  const T n = shifted - M::kShift;
  T r = fused(n, -M::kLn2High, x);
  r = fused(n, -M::kLn2Low, r);
  return {shifted, fused(r * r, M::exp_tail(r), r)};
}

/// The larger of both; x when either is a NaN.
template <class T>
__device__ inline T at_least(T limit, T x) {
  return limit > x ? limit : x;
}
/// The smaller of both; x when either is a NaN.
template <class T>
__device__ inline T at_most(T limit, T x) {
  return limit < x ? limit : x;
}

template <class T>
__device__ inline T sigmoid_of(T x) {
  using M = MathOf<T>;
  const Reduced<T> r = reduce(at_least(-M::kSmall, -with_sign(x, T(1))));
  const T scale = M::power(r.shifted);
  const T e = fused(scale, r.p, scale);  // exp(-|x|)
  const T quotient = (x < T(0) ? e : T(1)) / (T(1) + e);
  // Below -ln 3: e / (1 + e) = e - e (e / (1 + e)), so that most of the quotient's error cancels.
  return x < T(-1.0986) ? fused(-e, quotient, e) : quotient;
}

template <class T>
__device__ inline T tanh_of(T x) {
  using M = MathOf<T>;
  const T down = -with_sign(x, T(1));
  // From 0.55 on: 1 - 2 e / (1 + e) with e = exp(-2|x|). Below: x + x^3 t(x^2).
  const Reduced<T> r = reduce(at_least(-M::kTanhOne, down + down));
  const T scale = M::power(r.shifted);
  const T e = fused(scale, r.p, scale);
  const T large = T(1) - (e + e) / (T(1) + e);
  const T z = x * x;
  return with_sign(down < T(-0.55) ? large : fused(x * z, M::tanh_tail(z), x), x);
}

/// exp over the whole range.
template <class T>
__device__ inline T exp_of(T x) {
  using M = MathOf<T>;
  const Reduced<T> r = reduce(at_least(-M::kLeast, at_most(M::kBig, x)));
  // Two halves of the exponent: 2^128 alone would overflow.
  const T n = r.shifted - M::kShift;
  const T first = fused(n, T(0.5), M::kShift);
  const T second = (n - (first - M::kShift)) + M::kShift;
  const T scale = M::power(first);
  const T value = fused(scale, r.p, scale) * M::power(second);
  // Above kBig the value has overflowed, or is its limit times one more factor.
  return M::kBig < x ? static_cast<T>(INFINITY) : value;
}

/// log, for positive numbers and NaN.
__device__ inline double log_of(double x) {
  if (!(x < static_cast<double>(INFINITY))) return x;
  int exponent = 0;
  const double m = frexp(x, &exponent);
  return log_of_parts(m, exponent);
}

/// log of any number; subnormal ones count as 0.
template <class T>
__device__ inline T log_of_any(T x) {
  const double v = static_cast<double>(x);
  if (fabs(v) < MathOf<T>::kLeastNormal) return -static_cast<T>(INFINITY);
  return v < 0.0 ? static_cast<T>(NAN) : static_cast<T>(log_of(v));
}

/// Rounded once; a subnormal result is 0, as on the cpu.
template <class T>
__device__ inline T flushed(double x) {
  const T rounded = static_cast<T>(x);
  return fabs(static_cast<double>(rounded)) < MathOf<T>::kLeastNormal ? with_sign(T(0), rounded)
                                                                      : rounded;
}

/// What base/power.h asks for.
struct Split {
  __device__ double operator()(double x, int* exponent) const { return frexp(x, exponent); }
};
struct Scaled {
  __device__ double operator()(double x, int exponent) const { return ldexp(x, exponent); }
};

}  // namespace openrnn::gpu
