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
  /// Past the caches, to a whole line; others see it after a fence.
  void stream(float* p) const { _mm512_stream_ps(p, v); }
  static void fence() { _mm_sfence(); }
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
  void stream(double* p) const { _mm512_stream_pd(p, v); }
  static void fence() { _mm_sfence(); }
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
inline F32 load_half(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F32 load_half(const uint16_t* p, int64_t n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(F32::first(n), p))};
}
inline void store_half(F32 a, uint16_t* p, int64_t n) {
  _mm256_mask_storeu_epi16(p, F32::first(n),
                           _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// ---- Values of fewer bits, several in an element ----

inline __m512i words(F32 a) { return _mm512_castps_si512(a.v); }
inline F32 of_words(__m512i a) { return {_mm512_castsi512_ps(a)}; }
/// The bfloat16 in the low half of each word, and in the high half.
inline F32 low_bf16(F32 pairs) { return of_words(_mm512_slli_epi32(words(pairs), 16)); }
inline F32 high_bf16(F32 pairs) {
  return of_words(_mm512_and_si512(words(pairs), _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
}
/// The nearest bfloat16, ties to even; subnormals are kept, a NaN is a quiet one.
inline F32 nearest_bf16(F32 x) {
  const __m512i bits = words(x), one = _mm512_set1_epi32(1);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
  const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), even);
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_set1_epi32(0x00400000);
  return high_bf16(of_words(_mm512_mask_or_epi32(up, nan, bits, quiet)));
}
/// As an operand of math 'bf16': a subnormal is 0.
inline F32 round_bf16(F32 a) { return nearest_bf16(a * F32::broadcast(1.0f)); }
inline F32 load_bf16(const uint16_t* p, int64_t n) {
  return of_words(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(F32::first(n), p)), 16));
}
inline void store_bf16(F32 a, uint16_t* p, int64_t n) {
  const __m512i high = _mm512_srli_epi32(words(nearest_bf16(a)), 16);
  _mm256_mask_storeu_epi16(p, F32::first(n), _mm512_cvtepi32_epi16(high));
}
/// Pairs of bfloat16: sum + odd * odd, then + even * even.
#if defined(__AVX512BF16__)
inline F32 dot_bf16(F32 x, F32 w, F32 sum) {
  return {
      _mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(x.v), reinterpret_cast<__m512bh>(w.v))};
}
/// `inner` values as pairs, 0 beyond.
inline void pack_pairs(const float* x, int64_t inner, float* out) {
  for (int64_t k = 0; k < inner; k += 32) {
    const int64_t left = inner - k, high = left > 16 ? left - 16 : 0;
    const __m512 a = _mm512_maskz_loadu_ps(F32::first(left < 16 ? left : 16), x + k);
    const __m512 b = _mm512_maskz_loadu_ps(F32::first(high < 16 ? high : 16), x + k + 16);
    _mm512_storeu_si512(out + k / 2, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
  }
}
/// Columns of two rows as pairs: `even` in the low halves.
inline F32 pair_of(F32 even, F32 odd) {
  const auto pack = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.v, even.v));
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return of_words(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), pack));
}
#endif
/// Four values of a staged row of int8, as bytes + 128.
struct Int8Values {
  static constexpr int kWords = 1;
  F32 bytes;
  static Int8Values broadcast(const float* p) { return {F32::broadcast(*p)}; }
};
/// Words of four bytes: sum + the products of bytes of x, which count from 0 to 255, and of w.
inline F32 dot_int8(const Int8Values& x, F32 w, F32 sum) {
#if defined(__AVX512VNNI__)
  return of_words(_mm512_dpbusd_epi32(words(sum), words(x.bytes), words(w)));
#else
  const __m512i low = _mm512_set1_epi32(0x00FF00FF);
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(words(x.bytes), low),
                                         _mm512_srai_epi16(_mm512_slli_epi16(words(w), 8), 8));
  const __m512i odd =
      _mm512_madd_epi16(_mm512_srli_epi16(words(x.bytes), 8), _mm512_srai_epi16(words(w), 8));
  return of_words(_mm512_add_epi32(words(sum), _mm512_add_epi32(even, odd)));
#endif
}
/// What dot_int8 summed less 128 times the sum of w, which is at `weights`, as floats.
inline F32 int8_sum(F32 sum, const float* /*row*/, const float* weights) {
  return {_mm512_cvtepi32_ps(_mm512_sub_epi32(words(sum), words(F32::load(weights))))};
}
/// Values k and up of a staged row: integers, given as floats + 1.5 * 2^23.
inline void store_int8(F32 shifted, float* row, int64_t k, F32& /*negatives*/) {
  const __m128i bytes = _mm512_cvtepi32_epi8(words(shifted));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(row + k / 4),
                   _mm_xor_si128(bytes, _mm_set1_epi8(-128)));
}
