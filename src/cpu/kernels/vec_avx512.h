// Vectors of 512 bits. Included inside the namespace of its file.
#pragma once

struct F32 {
  using T = float;
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 32;
  __m512 v;
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static F32 load(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
  static F32 broadcast(float x) { return {_mm512_set1_ps(x)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, int64_t n) const { _mm512_mask_storeu_ps(p, first(n), v); }
};

struct F64 {
  using T = double;
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 32;
  __m512d v;
  static __mmask8 first(int64_t n) { return static_cast<__mmask8>((1u << n) - 1u); }
  static F64 load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static F64 load(const double* p, int64_t n) { return {_mm512_maskz_loadu_pd(first(n), p)}; }
  static F64 broadcast(double x) { return {_mm512_set1_pd(x)}; }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
  void store(double* p, int64_t n) const { _mm512_mask_storeu_pd(p, first(n), v); }
};

inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F64 operator+(F64 a, F64 b) { return {_mm512_add_pd(a.v, b.v)}; }
inline F64 operator-(F64 a, F64 b) { return {_mm512_sub_pd(a.v, b.v)}; }
inline F64 operator*(F64 a, F64 b) { return {_mm512_mul_pd(a.v, b.v)}; }
inline F64 operator/(F64 a, F64 b) { return {_mm512_div_pd(a.v, b.v)}; }
inline F64 fma(F64 a, F64 b, F64 c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }

/// a < b ? yes : no; a NaN compares false.
inline F32 select_less(F32 a, F32 b, F32 yes, F32 no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
inline F64 select_less(F64 a, F64 b, F64 yes, F64 no) {
  return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
inline F32 abs(F32 a) { return {_mm512_abs_ps(a.v)}; }
inline F64 abs(F64 a) { return {_mm512_abs_pd(a.v)}; }
/// The smaller of both; x when either is a NaN.
inline F32 least(F32 limit, F32 x) { return {_mm512_min_ps(limit.v, x.v)}; }
inline F64 least(F64 limit, F64 x) { return {_mm512_min_pd(limit.v, x.v)}; }
/// The larger of both; x when either is a NaN.
inline F32 largest(F32 limit, F32 x) { return {_mm512_max_ps(limit.v, x.v)}; }
inline F64 largest(F64 limit, F64 x) { return {_mm512_max_pd(limit.v, x.v)}; }
inline F32 negate(F32 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
inline F64 negate(F64 a) { return {_mm512_xor_pd(a.v, _mm512_set1_pd(-0.0))}; }
/// -|a|.
inline F32 negative(F32 a) { return {_mm512_or_ps(a.v, _mm512_set1_ps(-0.0f))}; }
inline F64 negative(F64 a) { return {_mm512_or_pd(a.v, _mm512_set1_pd(-0.0))}; }
/// The magnitude of a with the sign of s.
inline F32 with_sign(F32 a, F32 s) {
  const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000u));
  // 0xCA takes s where the mask is set and a where it is clear.
  return {_mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(s.v), _mm512_castps_si512(a.v), 0xCA))};
}
inline F64 with_sign(F64 a, F64 s) {
  const __m512i sign = _mm512_set1_epi64(static_cast<long long>(0x8000000000000000ull));
  return {_mm512_castsi512_pd(
      _mm512_ternarylogic_epi64(sign, _mm512_castpd_si512(s.v), _mm512_castpd_si512(a.v), 0xCA))};
}
/// 2^n from n + 1.5 * 2^23 (2^52): n stands in the low bits.
inline F32 power_of_two(F32 shifted) {
  return {_mm512_castsi512_ps(_mm512_add_epi32(
      _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23), _mm512_set1_epi32(0x3F800000)))};
}
inline F64 power_of_two(F64 shifted) {
  return {
      _mm512_castsi512_pd(_mm512_add_epi64(_mm512_slli_epi64(_mm512_castpd_si512(shifted.v), 52),
                                           _mm512_set1_epi64(0x3FF0000000000000ll)))};
}

inline F32 round_half(F32 a) {
  return {_mm512_cvtph_ps(_mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
}
inline F64 round_half(F64 a) { return a; }
inline F32 load_half(const uint16_t* p, int64_t n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(F32::first(n), p))};
}
inline void store_half(F32 a, uint16_t* p, int64_t n) {
  _mm256_mask_storeu_epi16(p, F32::first(n),
                           _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
