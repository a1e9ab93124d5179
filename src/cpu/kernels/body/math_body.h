// exp, sigmoid and tanh: the same operations in the same order for every vector width. Included
// inside the namespace of an instruction set.
//
// |                 | exp                    | sigmoid          | tanh                   |
// |-----------------|------------------------|------------------|------------------------|
// | value           | e^x                    | 1 / (1 + e^-x)   | sinh(x) / cosh(x)      |
// | error           | 2 ulp                  | 2 ulp            | 2 ulp                  |
// | range of x      | all                    | all              | all                    |
// | overflow        | inf from 88.73 (709.8) | never            | never                  |
// | 0 below         | -87.34 (-708.40)       | -87.34 (-708.40) | not, but of 0          |
// | 1 (tanh: or -1) | of 0                   | from 18 (38) on  | abs(x) from 12 (22) on |
// | inf, -inf       | inf, 0                 | 1, 0             | 1, -1                  |
// | NaN             | NaN                    | NaN              | NaN                    |
//
// Limits in brackets are double's. Errors hold for every x whose result is a normal number: tests
// visit every float, and samples of double. Below the smallest normal number results are 0, since
// kernels run with subnormals flushed; so are arguments. tanh keeps the sign of a zero.
#pragma once

// exp(r) = 1 + r + r^2 q(r) for |r| <= ln2 / 2; q interpolates (exp(r) - 1 - r) / r^2 in Chebyshev
// nodes (error below 2^-26 of float, 2^-62 of double).
template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr float kLog2e = 0x1.715476p+0f;
  // ln2 = high + low: n * high is exact inside an fma.
  static constexpr float kLn2High = 0x1.62e43p-1f, kLn2Low = -0x1.05c610p-29f;
  static constexpr float kShift = 0x1.8p23f;
  static constexpr int kTerms = 5;
  static constexpr float kQ[kTerms] = {0x1.6d113cp-10f, 0x1.120ba2p-7f, 0x1.555518p-5f,
                                       0x1.5554dcp-3f, 0.5f};
  // exp(-kSmall) is below the smallest normal number; exp(x) overflows above kBig.
  static constexpr float kSmall = 88.0f, kBig = 0x1.62e42ep+6f, kLeast = 104.0f;
  // tanh(x) rounds to 1 from kTanhOne / 2 on.
  static constexpr float kTanhOne = 24.0f;
  // (tanh(x) / x - 1) / x^2 in powers of x^2 up to 0.551^2, relative error below 2^-28 (2^-63).
  static constexpr int kTanhTerms = 5;
  static constexpr float kT[kTanhTerms] = {-0x1.b0c3e8p-8f, 0x1.5d12f8p-6f, -0x1.b99f08p-5f,
                                           0x1.110fe6p-3f, -0x1.555554p-2f};
};

template <>
struct MathConstants<double> {
  static constexpr double kLog2e = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
  static constexpr double kShift = 0x1.8p52;
  static constexpr int kTerms = 11;
  static constexpr double kQ[kTerms] = {0x1.1f731ea5352cap-29,
                                        0x1.af4e196027428p-26,
                                        0x1.27e4db57442fbp-22,
                                        0x1.71de021a90822p-19,
                                        0x1.a01a01a6dcaffp-16,
                                        0x1.a01a01abef415p-13,
                                        0x1.6c16c16c162ccp-10,
                                        0x1.11111111100cep-7,
                                        0x1.5555555555556p-5,
                                        0x1.5555555555557p-3,
                                        0.5};
  static constexpr double kSmall = 709.0, kBig = 0x1.62e42fefa39efp+9, kLeast = 746.0;
  static constexpr double kTanhOne = 44.0;
  static constexpr int kTanhTerms = 12;
  static constexpr double kT[kTanhTerms] = {
      0x1.0791c09edb524p-17, -0x1.1a9cd9ce828b6p-15, 0x1.8c7d0e9380c1ap-14, -0x1.f418af11d5a26p-13,
      0x1.35477c63db104p-11, -0x1.7da2587af0f6cp-10, 0x1.d6d3c5bf12a18p-9,  -0x1.226e3538bb571p-7,
      0x1.664f48822a1a2p-6,  -0x1.ba1ba1ba1a68bp-5,  0x1.1111111111109p-3,  -0x1.5555555555555p-2};
};

/// x = n ln2 + r; `shifted` holds n in its low bits, p = exp(r) - 1.
template <class V>
struct Reduced {
  V shifted, p;
};

template <class V>
inline Reduced<V> reduce(V x) {
  using C = MathConstants<typename V::T>;
  const V shift = V::broadcast(C::kShift);
  const V shifted = fma(x, V::broadcast(C::kLog2e), shift);
  const V n = shifted - shift;
  V r = fma(n, V::broadcast(-C::kLn2High), x);
  r = fma(n, V::broadcast(-C::kLn2Low), r);
  V q = V::broadcast(C::kQ[0]);
#pragma GCC unroll 16
  for (int i = 1; i < C::kTerms; ++i) q = fma(q, r, V::broadcast(C::kQ[i]));
  return {shifted, fma(r * r, q, r)};
}

/// exp(-|x|). A NaN stays one: limits let it through, and the polynomial keeps it.
template <class V>
inline V exp_negative(V x) {
  using C = MathConstants<typename V::T>;
  const Reduced<V> e = reduce(largest(V::broadcast(-C::kSmall), negative(x)));
  const V scale = power_of_two(e.shifted);
  return fma(scale, e.p, scale);
}

template <class V>
inline V sigmoid(V x) {
  using T = typename V::T;
  const V one = V::broadcast(T(1));
  const V e = exp_negative(x);
  const V top = select_less(x, V::broadcast(T(0)), e, one);
  const V quotient = top / (one + e);
  // Below -ln 3: e / (1 + e) = e - e (e / (1 + e)), so that most of the quotient's error cancels.
  return select_less(x, V::broadcast(T(-1.0986)), fma(negate(e), quotient, e), quotient);
}

template <class V>
inline V tanh(V x) {
  using T = typename V::T;
  using C = MathConstants<T>;
  // From 0.55 on: 1 - 2 e / (1 + e) with e = exp(-2|x|).
  const V one = V::broadcast(T(1)), down = negative(x);
  const Reduced<V> r = reduce(largest(V::broadcast(-C::kTanhOne), down + down));
  const V scale = power_of_two(r.shifted);
  const V e = fma(scale, r.p, scale);
  const V large = one - (e + e) / (one + e);
  // Below: x + x^3 t(x^2).
  const V z = x * x;
  V t = V::broadcast(C::kT[0]);
#pragma GCC unroll 16
  for (int i = 1; i < C::kTanhTerms; ++i) t = fma(t, z, V::broadcast(C::kT[i]));
  return with_sign(select_less(down, V::broadcast(T(-0.55)), large, fma(x * z, t, x)), x);
}

/// exp over the whole range.
template <class V>
inline V exp(V x) {
  using T = typename V::T;
  using C = MathConstants<T>;
  const V most = V::broadcast(C::kBig);
  const V inside = largest(V::broadcast(-C::kLeast), least(most, x));
  // Two halves of the exponent: 2^128 alone would overflow.
  const V half = V::broadcast(T(0.5));
  const Reduced<V> e = reduce(inside);
  const V shift = V::broadcast(C::kShift);
  const V n = e.shifted - shift;
  const V first = fma(n, half, shift);
  const V second = (n - (first - shift)) + shift;
  const V scale = power_of_two(first);
  const V value = fma(scale, e.p, scale) * power_of_two(second);
  // Above kBig the value has overflowed, or is its limit times one more factor.
  const V infinity = V::broadcast(T(__builtin_inf()));
  return select_less(most, x, infinity, value);
}

template <class V, V (*function)(V)>
void map(const typename V::T* x, typename V::T* y, int64_t size) {
  int64_t i = 0;
  for (; i + V::kLanes <= size; i += V::kLanes) function(V::load(x + i)).store(y + i);
  if (i < size) function(V::load(x + i, size - i)).store(y + i, size - i);
}
