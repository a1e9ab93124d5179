// Powers, and what is made of exp and log besides: constant expressions without a library call, so
// that every CPU, and a GPU too, computes the same bits.
#pragma once

#include "base/log_series.h"

namespace openrnn {

/// An unevaluated sum, of which `high` is the rounded value.
struct DoublePair {
  double high = 0.0, low = 0.0;
};

/// a + b without an error.
constexpr DoublePair exact_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a * b without an error, for magnitudes below 2^990: each factor is split into halves of 26 bits.
constexpr DoublePair exact_product(double a, double b) {
  const double wide_a = a * 0x1.0000002p27, wide_b = b * 0x1.0000002p27;
  const double a_high = wide_a - (wide_a - a), b_high = wide_b - (wide_b - b);
  const double a_low = a - a_high, b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

/// log(m * 2^exponent) for m in [1/2, 1), with a relative error below 2^-63.
constexpr DoublePair log_pair(double m, int exponent) {
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --exponent;
  }
  // log m = 2 s (1 + z / 3 + z^2 / 5 + ..), s = (m - 1) / (m + 1), z = s^2 <= 0.0295. What comes
  // after z / 3 is below 2^-12, so a double is enough for it.
  const double f = m - 1.0;
  const DoublePair below = exact_sum(2.0, f);
  const double s = f / below.high;
  const DoublePair back = exact_product(s, below.high);
  const double s_low = ((f - back.high) - back.low - s * below.low) / below.high;
  DoublePair z = exact_product(s, s);
  z.low += 2.0 * s * s_low;
  double tail = 0.0;
  for (int k = 25; k >= 5; k -= 2) tail = z.high * (1.0 / k + tail);
  tail *= z.high;
  constexpr double kThird = 1.0 / 3, kThirdLow = 0x1.5555555555555p-56;
  const DoublePair third = exact_product(z.high, kThird);
  const DoublePair u =
      exact_sum(third.high, (third.low + z.high * kThirdLow + z.low * kThird) + tail);
  const DoublePair more = exact_product(s, u.high);
  const double more_low = more.low + s * u.low + s_low * (1.0 + u.high);
  // exponent * ln 2, whose first part has 32 bits.
  const DoublePair first = exact_sum(exponent * 0x1.62e42feep-1, 2.0 * s);
  const DoublePair second = exact_sum(first.high, 2.0 * more.high);
  const double low = first.low + second.low + 2.0 * more_low + exponent * 0x1.a39ef35793c76p-33;
  return exact_sum(second.high, low);
}

/// exp(x.high + x.low) = value * 2^exponent, the value near 1; for |x| below 800.
struct ScaledExp {
  double value = 1.0;
  int exponent = 0;
};
constexpr ScaledExp scaled_exp(DoublePair x) {
  const double n = (x.high * 1.4426950408889634 + 0x1.8p52) - 0x1.8p52;
  const double high = x.high - n * 0x1.62e42feep-1;
  const double low = n * 0x1.a39ef35793c76p-33;
  const double near = high - low;
  const DoublePair sum = exact_sum(near, ((high - near) - low) + x.low);
  const double r = sum.high;
  // Taylor series of degree 13: |r| <= ln2 / 2, so the truncated rest is below 2^-58.
  double series = 1.0 / 13;
  for (int k = 12; k >= 2; --k) series = (1.0 + series * r) / k;
  const double head = 1.0 + r;
  return {head + (((1.0 - head) + r) + (sum.low + r * r * series)), static_cast<int>(n)};
}

/// Whether y is an integer, and whether an odd one.
constexpr bool is_whole(double y) {
  if (y >= 0x1p53 || y <= -0x1p53) return true;
  return static_cast<double>(static_cast<long long>(y)) == y;
}
constexpr bool is_odd(double y) {
  return y < 0x1p53 && y > -0x1p53 && is_whole(y) && static_cast<long long>(y) % 2 != 0;
}

// A CPU and a GPU each bring two functions that do not round: split(x, &exponent) is frexp,
// scaled(x, exponent) ldexp.

/// exp(x.high + x.low) over the whole range.
template <class Scaled>
constexpr double exp_of_pair(DoublePair x, const Scaled& scaled) {
  if (x.high > 709.8) return scaled(1.0, 1023) * 2.0;
  if (x.high < -745.2) return 0.0;
  const ScaledExp e = scaled_exp(x);
  const int first = e.exponent / 2;
  return e.value * scaled(1.0, first) * scaled(1.0, e.exponent - first);
}

/// x^y with all special cases of IEEE 754; an error below 2 ulp.
template <class Split, class Scaled>
constexpr double power_of(double x, double y, const Split& split, const Scaled& scaled) {
  if (x == 1.0 || y == 0.0) return 1.0;
  if (x != x || y != y) return x + y;
  const double infinity = scaled(1.0, 1023) * 2.0;
  const double size = x < 0.0 ? -x : x;
  const bool whole = is_whole(y);
  // 1 / x tells the sign of a zero.
  const bool negative = (x < 0.0 || (x == 0.0 && 1.0 / x < 0.0)) && is_odd(y);
  if (x < 0.0 && !whole && size != infinity) return infinity - infinity;
  double result = 0.0;
  if (size == 1.0) {
    result = 1.0;
  } else if (size == 0.0 || size == infinity || y == infinity || y == -infinity) {
    result = (size < 1.0) == (y < 0.0) ? infinity : 0.0;
  } else {
    // Beyond 2^64 the logarithm does not matter: it is at least 2^-53.
    const double bounded = y > 0x1p64 ? 0x1p64 : y < -0x1p64 ? -0x1p64 : y;
    int exponent = 0;
    const double m = split(size, &exponent);
    const DoublePair log = log_pair(m, exponent);
    DoublePair product = exact_product(bounded, log.high);
    product.low += bounded * log.low;
    result = exp_of_pair(product, scaled);
  }
  return negative ? -result : result;
}

/// log(1 + e^x), with an error below 2 ulp.
template <class Split, class Scaled>
constexpr double softplus_of(double x, const Split& split, const Scaled& scaled) {
  if (x != x) return x;
  const double e = exp_of_pair({x > 0.0 ? -x : x, 0.0}, scaled);
  const double u = 1.0 + e;
  int exponent = 0;
  const double m = split(u, &exponent);
  // What u has lost of 1 + e comes back as the first term of its logarithm.
  const DoublePair parts = log_pair(m, exponent);
  const double log = parts.high + (parts.low + (e - (u - 1.0)) / u);
  return x > 0.0 ? x + log : log;
}

}  // namespace openrnn
