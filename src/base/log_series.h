// The logarithm of a number split by frexp: a constant expression without a library call, so that
// every CPU, and a GPU too, computes the same bits.
#pragma once

namespace openrnn {

/// log(m * 2^exponent) for m in [1/2, 1).
constexpr double log_of_parts(double m, int exponent) {
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --exponent;
  }
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716: 11 odd terms reach 2^-60.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double tail = 0.0;
  for (int k = 23; k >= 3; k -= 2) tail = z * (1.0 / k + tail);
  const double series = 2.0 * s * tail;
  const double high = exponent * 0x1.62e42feep-1;
  const double low = exponent * 0x1.a39ef35793c76p-33;
  // log m = 2s + series, and 2s = f - s f.
  return high + (f - (s * f - (series + low)));
}

}  // namespace openrnn
