// exp, sigmoid and tanh: the same operations in the same order for every vector width. Errors stay
// below 2 ulp; results below the smallest normal number are 0 because kernels run with subnormals
// flushed. Included inside the namespace of an instruction set.
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

/// exp(-x) for x >= 0; NaN gives an unspecified value.
template <class V>
inline V exp_negative(V x) {
  using T = typename V::T;
  using C = MathConstants<T>;
  const V small = V::broadcast(C::kSmall);
  const V magnitude = select_less(x, small, x, small);
  const Reduced<V> e = reduce(V::broadcast(T(0)) - magnitude);
  const V scale = power_of_two(e.shifted);
  return fma(scale, e.p, scale);
}

template <class V>
inline V sigmoid(V x) {
  using T = typename V::T;
  const V one = V::broadcast(T(1));
  const V e = exp_negative(abs(x));
  const V top = select_less(x, V::broadcast(T(0)), e, one);
  return keep_nan(x, top / (one + e));
}

template <class V>
inline V tanh(V x) {
  using T = typename V::T;
  using C = MathConstants<T>;
  const V twice = abs(x) + abs(x);
  const V most = V::broadcast(C::kTanhOne);
  // With y = exp(-2|x|) - 1: tanh|x| = -y / (2 + y).
  const Reduced<V> e = reduce(V::broadcast(T(0)) - select_less(twice, most, twice, most));
  const V scale = power_of_two(e.shifted);
  const V y = fma(scale, e.p, scale - V::broadcast(T(1)));
  return keep_nan(x, with_sign(y / (V::broadcast(T(2)) + y), x));
}

/// exp over the whole range.
template <class V>
inline V exp(V x) {
  using T = typename V::T;
  using C = MathConstants<T>;
  const V least = V::broadcast(-C::kLeast), most = V::broadcast(C::kBig);
  const V inside = select_less(most, x, most, select_less(x, least, least, x));
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
  return keep_nan(x, select_less(most, x, infinity, value));
}

template <class V, V (*function)(V)>
void map(const typename V::T* x, typename V::T* y, int64_t size) {
  int64_t i = 0;
  for (; i + V::kLanes <= size; i += V::kLanes) function(V::load(x + i)).store(y + i);
  if (i < size) function(V::load(x + i, size - i)).store(y + i, size - i);
}
