// Vectors of one element, for any processor. Included inside the namespace of its file.
#pragma once

inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }

struct F32 {
  using T = float;
  static constexpr int kLanes = 1;
  static constexpr int kRegisters = 16;
  float v;
  static F32 load(const float* p) { return {*p}; }
  static F32 load(const float* p, int64_t) { return {*p}; }
  static F32 broadcast(float x) { return {x}; }
  void store(float* p) const { *p = v; }
  void store(float* p, int64_t) const { *p = v; }
};

struct F64 {
  using T = double;
  static constexpr int kLanes = 1;
  static constexpr int kRegisters = 16;
  double v;
  static F64 load(const double* p) { return {*p}; }
  static F64 load(const double* p, int64_t) { return {*p}; }
  static F64 broadcast(double x) { return {x}; }
  void store(double* p) const { *p = v; }
  void store(double* p, int64_t) const { *p = v; }
};

inline F32 fma(F32 a, F32 b, F32 c) { return {__builtin_fmaf(a.v, b.v, c.v)}; }
inline F64 fma(F64 a, F64 b, F64 c) { return {__builtin_fma(a.v, b.v, c.v)}; }

template <class V>
V operator+(V a, V b) {
  return {a.v + b.v};
}
template <class V>
V operator-(V a, V b) {
  return {a.v - b.v};
}
template <class V>
V operator*(V a, V b) {
  return {a.v * b.v};
}
template <class V>
V operator/(V a, V b) {
  return {a.v / b.v};
}
/// a < b ? yes : no; a NaN compares false.
template <class V>
V select_less(V a, V b, V yes, V no) {
  return a.v < b.v ? yes : no;
}

inline F32 abs(F32 a) { return {__builtin_bit_cast(float, bits_of(a.v) & 0x7FFFFFFFu)}; }
inline F64 abs(F64 a) { return {__builtin_bit_cast(double, bits_of(a.v) & 0x7FFFFFFFFFFFFFFFull)}; }
/// The smaller of both; x when either is a NaN.
template <class V>
V least(V limit, V x) {
  return limit.v < x.v ? limit : x;
}
/// The larger of both; x when either is a NaN.
template <class V>
V largest(V limit, V x) {
  return limit.v > x.v ? limit : x;
}
template <class V>
V negate(V a) {
  return {-a.v};
}
/// -|a|.
template <class V>
V negative(V a) {
  return {-abs(a).v};
}
/// The magnitude of a with the sign of s.
inline F32 with_sign(F32 a, F32 s) {
  return {__builtin_bit_cast(float, bits_of(abs(a).v) | (bits_of(s.v) & 0x80000000u))};
}
inline F64 with_sign(F64 a, F64 s) {
  return {__builtin_bit_cast(double, bits_of(abs(a).v) | (bits_of(s.v) & 0x8000000000000000ull))};
}
/// 2^n from n + 1.5 * 2^23 (2^52): n stands in the low bits.
inline F32 power_of_two(F32 shifted) {
  return {__builtin_bit_cast(float, (bits_of(shifted.v) << 23) + 0x3F800000u)};
}
inline F64 power_of_two(F64 shifted) {
  return {__builtin_bit_cast(double, (bits_of(shifted.v) << 52) + 0x3FF0000000000000ull)};
}

inline float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 31) {
    const uint32_t quiet = fraction ? 0x400000u : 0u;
    return __builtin_bit_cast(float, sign | 0x7F800000u | quiet | (fraction << 13));
  }
  if (exponent == 0) {
    const uint32_t magnitude = bits_of(static_cast<float>(fraction) * 0x1p-24f);
    return __builtin_bit_cast(float, sign | magnitude);
  }
  return __builtin_bit_cast(float, sign | ((exponent + 112u) << 23) | (fraction << 13));
}

inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x477FF000u) {  // 65520 and above round to infinity
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal half
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // The unit of 0.5f is 2^-24, the smallest half, so this sum rounds as a subnormal half does.
    half = bits_of(__builtin_bit_cast(float, magnitude) + 0.5f) - 0x3F000000u;
  }
  return static_cast<uint16_t>(sign | half);
}

inline F32 round_half(F32 a) { return {half_to_float(float_to_half(a.v))}; }
inline F32 load_half(const uint16_t* p) { return {half_to_float(*p)}; }
inline F32 load_half(const uint16_t* p, int64_t) { return {half_to_float(*p)}; }
inline void store_half(F32 a, uint16_t* p, int64_t) { *p = float_to_half(a.v); }

// ---- Values of fewer bits, several in an element ----

/// The bfloat16 in the low half of a word, and in the high half.
inline F32 low_bf16(F32 pair) { return {__builtin_bit_cast(float, bits_of(pair.v) << 16)}; }
inline F32 high_bf16(F32 pair) {
  return {__builtin_bit_cast(float, bits_of(pair.v) & 0xFFFF0000u)};
}
/// The nearest bfloat16, ties to even; subnormals are kept, a NaN is a quiet one.
inline F32 nearest_bf16(F32 a) {
  const uint32_t bits = bits_of(a.v);
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  const uint32_t up = bits + 0x7FFFu + ((bits >> 16) & 1u);
  return {__builtin_bit_cast(float, (nan ? bits | 0x00400000u : up) & 0xFFFF0000u)};
}
/// As an operand of math 'bf16': a subnormal is 0.
inline F32 round_bf16(F32 a) {
  const uint32_t bits = bits_of(a.v);
  if ((bits & 0x7FFFFFFFu) < 0x00800000u) return {__builtin_bit_cast(float, bits & 0x80000000u)};
  return nearest_bf16(a);
}
inline F32 load_bf16(const uint16_t* p, int64_t) {
  return {__builtin_bit_cast(float, static_cast<uint32_t>(*p) << 16)};
}
inline void store_bf16(F32 a, uint16_t* p, int64_t) {
  *p = static_cast<uint16_t>(bits_of(nearest_bf16(a).v) >> 16);
}
/// Four values of a staged row of int8, as bytes + 128.
struct Int8Values {
  static constexpr int kWords = 1;
  F32 bytes;
  static Int8Values broadcast(const float* p) { return {F32::broadcast(*p)}; }
};
/// A word of four bytes: sum + the products of bytes of x, which count from 0 to 255, and of w.
inline F32 dot_int8(const Int8Values& x, F32 w, F32 sum) {
  const uint32_t xs = bits_of(x.bytes.v), ws = bits_of(w.v);
  uint32_t total = bits_of(sum.v);
  for (int i = 0; i < 32; i += 8) {
    total += static_cast<uint32_t>(static_cast<uint8_t>(xs >> i) * static_cast<int8_t>(ws >> i));
  }
  return {__builtin_bit_cast(float, total)};
}
/// What dot_int8 summed less 128 times the sum of w, which is at `weights`, as a float.
inline F32 int8_sum(F32 sum, const float* /*row*/, const float* weights) {
  return {static_cast<float>(static_cast<int32_t>(bits_of(sum.v) - bits_of(*weights)))};
}
/// Value k of a staged row: an integer, given as a float + 1.5 * 2^23.
inline void store_int8(F32 shifted, float* row, int64_t k, F32& /*negatives*/) {
  reinterpret_cast<uint8_t*>(row)[k] = static_cast<uint8_t>(bits_of(shifted.v) + 128);
}
