// Vectors of 128 bits. Included inside the namespace of its file.
#pragma once

struct F32 {
  using T = float;
  static constexpr int kLanes = 4;
  static constexpr int kRegisters = 32;
  float32x4_t v;
  static F32 load(const float* p) { return {vld1q_f32(p)}; }
  static F32 load(const float* p, int64_t n) {
    float part[4] = {};
    for (int64_t i = 0; i < n; ++i) part[i] = p[i];
    return load(part);
  }
  static F32 broadcast(float x) { return {vdupq_n_f32(x)}; }
  void store(float* p) const { vst1q_f32(p, v); }
  void store(float* p, int64_t n) const {
    float part[4];
    store(part);
    for (int64_t i = 0; i < n; ++i) p[i] = part[i];
  }
};

struct F64 {
  using T = double;
  static constexpr int kLanes = 2;
  static constexpr int kRegisters = 32;
  float64x2_t v;
  static F64 load(const double* p) { return {vld1q_f64(p)}; }
  static F64 load(const double* p, int64_t n) { return n == 2 ? load(p) : F64{{*p, 0.0}}; }
  static F64 broadcast(double x) { return {vdupq_n_f64(x)}; }
  void store(double* p) const { vst1q_f64(p, v); }
  void store(double* p, int64_t n) const {
    if (n == 2) return store(p);
    *p = vgetq_lane_f64(v, 0);
  }
};

inline F32 operator+(F32 a, F32 b) { return {vaddq_f32(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {vsubq_f32(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {vmulq_f32(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {vdivq_f32(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
inline F64 operator+(F64 a, F64 b) { return {vaddq_f64(a.v, b.v)}; }
inline F64 operator-(F64 a, F64 b) { return {vsubq_f64(a.v, b.v)}; }
inline F64 operator*(F64 a, F64 b) { return {vmulq_f64(a.v, b.v)}; }
inline F64 operator/(F64 a, F64 b) { return {vdivq_f64(a.v, b.v)}; }
inline F64 fma(F64 a, F64 b, F64 c) { return {vfmaq_f64(c.v, a.v, b.v)}; }

/// a < b ? yes : no; a NaN compares false.
inline F32 select_less(F32 a, F32 b, F32 yes, F32 no) {
  return {vbslq_f32(vcltq_f32(a.v, b.v), yes.v, no.v)};
}
inline F64 select_less(F64 a, F64 b, F64 yes, F64 no) {
  return {vbslq_f64(vcltq_f64(a.v, b.v), yes.v, no.v)};
}
inline F32 abs(F32 a) { return {vabsq_f32(a.v)}; }
inline F64 abs(F64 a) { return {vabsq_f64(a.v)}; }
/// The smaller of both; x when either is a NaN.
inline F32 least(F32 limit, F32 x) { return select_less(limit, x, limit, x); }
inline F64 least(F64 limit, F64 x) { return select_less(limit, x, limit, x); }
/// The larger of both; x when either is a NaN.
inline F32 largest(F32 limit, F32 x) { return select_less(x, limit, limit, x); }
inline F64 largest(F64 limit, F64 x) { return select_less(x, limit, limit, x); }
inline F32 negate(F32 a) { return {vnegq_f32(a.v)}; }
inline F64 negate(F64 a) { return {vnegq_f64(a.v)}; }
/// -|a|.
inline F32 negative(F32 a) { return {vnegq_f32(vabsq_f32(a.v))}; }
inline F64 negative(F64 a) { return {vnegq_f64(vabsq_f64(a.v))}; }
/// The magnitude of a with the sign of s.
inline F32 with_sign(F32 a, F32 s) { return {vbslq_f32(vdupq_n_u32(0x80000000u), s.v, a.v)}; }
inline F64 with_sign(F64 a, F64 s) {
  return {vbslq_f64(vdupq_n_u64(0x8000000000000000ull), s.v, a.v)};
}
/// 2^n from n + 1.5 * 2^23 (2^52): n stands in the low bits.
inline F32 power_of_two(F32 shifted) {
  return {vreinterpretq_f32_u32(
      vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted.v), 23), vdupq_n_u32(0x3F800000u)))};
}
inline F64 power_of_two(F64 shifted) {
  return {vreinterpretq_f64_u64(vaddq_u64(vshlq_n_u64(vreinterpretq_u64_f64(shifted.v), 52),
                                          vdupq_n_u64(0x3FF0000000000000ull)))};
}

inline F32 round_half(F32 a) { return {vcvt_f32_f16(vcvt_f16_f32(a.v))}; }
inline F32 load_half(const uint16_t* p) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))};
}
inline F32 load_half(const uint16_t* p, int64_t n) {
  uint16_t part[4] = {};
  for (int64_t i = 0; i < n; ++i) part[i] = p[i];
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(part)))};
}
inline void store_half(F32 a, uint16_t* p, int64_t n) {
  uint16_t part[4];
  vst1_u16(part, vreinterpret_u16_f16(vcvt_f16_f32(a.v)));
  for (int64_t i = 0; i < n; ++i) p[i] = part[i];
}

// ---- Values of fewer bits, several in an element ----

inline uint32x4_t words(F32 a) { return vreinterpretq_u32_f32(a.v); }
inline F32 of_words(uint32x4_t a) { return {vreinterpretq_f32_u32(a)}; }
/// The bfloat16 in the low half of each word, and in the high half.
inline F32 low_bf16(F32 pairs) { return of_words(vshlq_n_u32(words(pairs), 16)); }
inline F32 high_bf16(F32 pairs) {
  return of_words(vandq_u32(words(pairs), vdupq_n_u32(0xFFFF0000u)));
}
/// The nearest bfloat16, ties to even; subnormals are kept, a NaN is a quiet one.
inline F32 nearest_bf16(F32 x) {
  const uint32x4_t bits = words(x), one = vdupq_n_u32(1);
  const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), one);
  const uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), even);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
  return high_bf16(of_words(vbslq_u32(vceqq_f32(x.v, x.v), up, quiet)));
}
/// As an operand of math 'bf16': a subnormal is 0.
inline F32 round_bf16(F32 a) { return nearest_bf16(a * F32::broadcast(1.0f)); }
inline F32 load_bf16(const uint16_t* p, int64_t n) {
  uint16_t part[4] = {};
  for (int64_t i = 0; i < n; ++i) part[i] = p[i];
  return of_words(vshlq_n_u32(vmovl_u16(vld1_u16(part)), 16));
}
inline void store_bf16(F32 a, uint16_t* p, int64_t n) {
  uint16_t part[4];
  vst1_u16(part, vshrn_n_u32(words(nearest_bf16(a)), 16));
  for (int64_t i = 0; i < n; ++i) p[i] = part[i];
}
/// Four values of a staged row of int8, as bytes + 128.
struct Int8Values {
  static constexpr int kWords = 1;
  F32 bytes;
  static Int8Values broadcast(const float* p) { return {F32::broadcast(*p)}; }
};
/// Words of four bytes: sum + the products of bytes of x, less 128, and of w, as integers. A pair
/// of products of at most 127 * 127 fits 16 bits.
inline F32 dot_int8(const Int8Values& x, F32 w, F32 sum) {
  const int8x16_t xs =
      vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(words(x.bytes)), vdupq_n_u8(128)));
  const int8x16_t ws = vreinterpretq_s8_u32(words(w));
  const int16x8_t low = vmull_s8(vget_low_s8(xs), vget_low_s8(ws));
  const int16x8_t high = vmull_s8(vget_high_s8(xs), vget_high_s8(ws));
  const int32x4_t total = vpadalq_s16(vreinterpretq_s32_u32(words(sum)), vpaddq_s16(low, high));
  return of_words(vreinterpretq_u32_s32(total));
}
/// What dot_int8 summed, as floats; 128 times the sum of w, at `weights`, is not in it.
inline F32 int8_sum(F32 sum, const float* /*row*/, const float* /*weights*/) {
  return {vcvtq_f32_s32(vreinterpretq_s32_u32(words(sum)))};
}
/// Values k and up of a staged row: integers, given as floats + 1.5 * 2^23.
inline void store_int8(F32 shifted, float* row, int64_t k, F32& /*negatives*/) {
  uint32_t part[4];
  vst1q_u32(part, words(shifted));
  auto* const bytes = reinterpret_cast<uint8_t*>(row) + k;
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(part[i] + 128);
}
