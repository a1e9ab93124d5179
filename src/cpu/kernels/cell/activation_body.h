// The functions of cells with options, with their slopes. Included inside the namespace of an
// instruction set, after math_body.h.
//
// |                  | value at x                      | slope at x                 | error   |
// |------------------|---------------------------------|----------------------------|---------|
// | sigmoid          | math_body.h                     | y (1 - y)                  | 2 ulp   |
// | tanh             | math_body.h                     | 1 - y^2                    | 2 ulp   |
// | relu             | max(x, 0)                       | 1 above 0, else 0          | exact   |
// | affine           | alpha x + beta                  | alpha                      | 1 round |
// | leaky_relu       | x above 0, else alpha x         | 1 above 0, else alpha      | 1 round |
// | thresholded_relu | x above alpha, else 0           | 1 above alpha, else 0      | exact   |
// | scaled_tanh      | alpha tanh(beta x)              | alpha beta (1 - tanh^2)    | 4 ulp   |
// | hard_sigmoid     | alpha x + beta within [0, 1]    | alpha inside, else 0       | 1 round |
// | elu              | x above 0, else alpha (e^x - 1) | 1 above 0, else alpha e^x  | 3 ulp   |
// | softsign         | x / (1 + |x|)                   | 1 / (1 + |x|)^2            | 2 ulp   |
// | softplus         | max(x, 0) + ln(1 + e^-|x|)      | sigmoid(x)                 | 2 ulp   |
//
// Parameters are rounded to the type first. A NaN stays one.
#pragma once

// atanh(s) = s + s^3 g(s^2): g interpolates in Chebyshev nodes of [0, 1/9] (error below 2^-28 of
// float, 2^-59 of double).
template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  static constexpr int kTerms = 5;
  static constexpr float kG[kTerms] = {0x1.dba26p-4f, 0x1.bc8cf8p-4f, 0x1.24c926p-3f,
                                       0x1.9998d4p-3f, 0x1.555556p-2f};
};
template <>
struct LogConstants<double> {
  static constexpr int kTerms = 11;
  static constexpr double kG[kTerms] = {
      0x1.401d3e65cdc48p-4, 0x1.32e0d25c9c761p-5, 0x1.bc37f0140c19ep-5, 0x1.e0a2d581ab68fp-5,
      0x1.111abdc8abe16p-4, 0x1.3b13515f6f9efp-4, 0x1.745d19937b1fcp-4, 0x1.c71c71bedea97p-4,
      0x1.2492492499d46p-3, 0x1.9999999999944p-3, 0x1.5555555555555p-2};
};

/// ln(1 + e) for e in [0, 1]: 2 atanh(s) with s = e / (2 + e), written as e less what is small, so
/// that most errors are of that alone.
template <class V>
inline V log_of_one_and(V e) {
  using C = LogConstants<typename V::T>;
  const V s = e / (V::broadcast(2) + e), z = s * s;
  V g = V::broadcast(C::kG[0]);
#pragma GCC unroll 16
  for (int i = 1; i < C::kTerms; ++i) g = fma(g, z, V::broadcast(C::kG[i]));
  return fma(negate(s), fma(negate(z + z), g, e), e);
}

/// e^x - 1 for x <= 0.
template <class V>
inline V exp_less_one(V x) {
  using C = MathConstants<typename V::T>;
  const V below = least(V::broadcast(0), largest(V::broadcast(-C::kTanhOne), x));
  const Reduced<V> e = reduce(below);
  const V scale = power_of_two(e.shifted);
  return fma(scale, e.p, scale - V::broadcast(1));
}

template <class V>
inline V relu(V x) {
  return largest(V::broadcast(0), x);
}

template <class V>
inline V activate(const CellFunction<typename V::T>& f, V x) {
  const V zero = V::broadcast(0), one = V::broadcast(1), alpha = V::broadcast(f.alpha);
  switch (f.kind) {
    case kFunctionSigmoid:
      return sigmoid(x);
    case kFunctionTanh:
      return tanh(x);
    case kFunctionRelu:
      return relu(x);
    case kFunctionAffine:
      return fma(alpha, x, V::broadcast(f.beta));
    case kFunctionLeakyRelu:
      return select_less(zero, x, x, alpha * x);
    case kFunctionThresholdedRelu:
      return select_less(x, V::broadcast(f.beta), zero, x);
    case kFunctionScaledTanh:
      return alpha * tanh(V::broadcast(f.beta) * x);
    case kFunctionHardSigmoid:
      return least(one, largest(zero, fma(alpha, x, V::broadcast(f.beta))));
    case kFunctionElu:
      return select_less(zero, x, x, alpha * exp_less_one(x));
    case kFunctionSoftsign:
      return x / (one + abs(x));
    default:
      return relu(x) + log_of_one_and(exp_negative(x));
  }
}

/// A function's value and slope at one argument.
template <class V>
struct Evaluated {
  V value, slope;
};

template <class V>
inline Evaluated<V> evaluate(const CellFunction<typename V::T>& f, V x) {
  const V zero = V::broadcast(0), one = V::broadcast(1), alpha = V::broadcast(f.alpha);
  const V y = activate(f, x);
  switch (f.kind) {
    case kFunctionSigmoid:
      return {y, y * (one - y)};
    case kFunctionTanh:
      return {y, fma(negate(y), y, one)};
    case kFunctionRelu:
      return {y, select_less(zero, x, one, zero)};
    case kFunctionAffine:
      return {y, alpha};
    case kFunctionLeakyRelu:
      return {y, select_less(zero, x, one, alpha)};
    case kFunctionThresholdedRelu:
      return {y, select_less(x, V::broadcast(f.beta), zero, one)};
    case kFunctionScaledTanh: {
      const V t = tanh(V::broadcast(f.beta) * x);
      return {y, (alpha * V::broadcast(f.beta)) * fma(negate(t), t, one)};
    }
    case kFunctionHardSigmoid:
      return {y, select_less(zero, y, select_less(y, one, alpha, zero), zero)};
    case kFunctionElu:
      return {y, select_less(zero, x, one, fma(alpha, exp_less_one(x), alpha))};
    case kFunctionSoftsign: {
      const V d = one + abs(x);
      return {y, one / (d * d)};
    }
    default:
      return {y, sigmoid(x)};
  }
}
