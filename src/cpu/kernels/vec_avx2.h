// Vectors of 256 bits. Included inside the namespace of its file.
#pragma once

// Eight words from element 8 - n are a mask of the first n.
alignas(64) static const int32_t kFirst[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                               0,  0,  0,  0,  0,  0,  0,  0};

struct F32 {
  using T = float;
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 16;
  __m256 v;
  static __m256i first(int64_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 8 - n));
  }
  static F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static F32 load(const float* p, int64_t n) { return {_mm256_maskload_ps(p, first(n))}; }
  static F32 broadcast(float x) { return {_mm256_set1_ps(x)}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(float* p, int64_t n) const { _mm256_maskstore_ps(p, first(n), v); }
};

struct F64 {
  using T = double;
  static constexpr int kLanes = 4;
  static constexpr int kRegisters = 16;
  __m256d v;
  static __m256i first(int64_t n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 8 - 2 * n));
  }
  static F64 load(const double* p) { return {_mm256_loadu_pd(p)}; }
  static F64 load(const double* p, int64_t n) { return {_mm256_maskload_pd(p, first(n))}; }
  static F64 broadcast(double x) { return {_mm256_set1_pd(x)}; }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
  void store(double* p, int64_t n) const { _mm256_maskstore_pd(p, first(n), v); }
};

inline F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F64 operator+(F64 a, F64 b) { return {_mm256_add_pd(a.v, b.v)}; }
inline F64 operator-(F64 a, F64 b) { return {_mm256_sub_pd(a.v, b.v)}; }
inline F64 operator*(F64 a, F64 b) { return {_mm256_mul_pd(a.v, b.v)}; }
inline F64 operator/(F64 a, F64 b) { return {_mm256_div_pd(a.v, b.v)}; }
inline F64 fma(F64 a, F64 b, F64 c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }

/// a < b ? yes : no; a NaN compares false.
inline F32 select_less(F32 a, F32 b, F32 yes, F32 no) {
  return {_mm256_blendv_ps(no.v, yes.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
}
inline F64 select_less(F64 a, F64 b, F64 yes, F64 no) {
  return {_mm256_blendv_pd(no.v, yes.v, _mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ))};
}
inline F32 abs(F32 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline F64 abs(F64 a) { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), a.v)}; }
/// The smaller of both; x when either is a NaN.
inline F32 least(F32 limit, F32 x) { return {_mm256_min_ps(limit.v, x.v)}; }
inline F64 least(F64 limit, F64 x) { return {_mm256_min_pd(limit.v, x.v)}; }
/// The larger of both; x when either is a NaN.
inline F32 largest(F32 limit, F32 x) { return {_mm256_max_ps(limit.v, x.v)}; }
inline F64 largest(F64 limit, F64 x) { return {_mm256_max_pd(limit.v, x.v)}; }
inline F32 negate(F32 a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
inline F64 negate(F64 a) { return {_mm256_xor_pd(a.v, _mm256_set1_pd(-0.0))}; }
/// -|a|.
inline F32 negative(F32 a) { return {_mm256_or_ps(a.v, _mm256_set1_ps(-0.0f))}; }
inline F64 negative(F64 a) { return {_mm256_or_pd(a.v, _mm256_set1_pd(-0.0))}; }
/// The magnitude of a with the sign of s.
inline F32 with_sign(F32 a, F32 s) {
  return {_mm256_or_ps(abs(a).v, _mm256_and_ps(_mm256_set1_ps(-0.0f), s.v))};
}
inline F64 with_sign(F64 a, F64 s) {
  return {_mm256_or_pd(abs(a).v, _mm256_and_pd(_mm256_set1_pd(-0.0), s.v))};
}
/// 2^n from n + 1.5 * 2^23 (2^52): n stands in the low bits.
inline F32 power_of_two(F32 shifted) {
  return {_mm256_castsi256_ps(_mm256_add_epi32(
      _mm256_slli_epi32(_mm256_castps_si256(shifted.v), 23), _mm256_set1_epi32(0x3F800000)))};
}
inline F64 power_of_two(F64 shifted) {
  return {
      _mm256_castsi256_pd(_mm256_add_epi64(_mm256_slli_epi64(_mm256_castpd_si256(shifted.v), 52),
                                           _mm256_set1_epi64x(0x3FF0000000000000ll)))};
}

inline F32 round_half(F32 a) {
  return {_mm256_cvtph_ps(_mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
}
inline F32 load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline F32 load_half(const uint16_t* p, int64_t n) {
  uint16_t part[8] = {};
  for (int64_t i = 0; i < n; ++i) part[i] = p[i];
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(part)))};
}
inline void store_half(F32 a, uint16_t* p, int64_t n) {
  uint16_t part[8];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(part),
                   _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  for (int64_t i = 0; i < n; ++i) p[i] = part[i];
}

// ---- Values of fewer bits, several in an element ----

inline __m256i words(F32 a) { return _mm256_castps_si256(a.v); }
inline F32 of_words(__m256i a) { return {_mm256_castsi256_ps(a)}; }
/// The bfloat16 in the low half of each word, and in the high half.
inline F32 low_bf16(F32 pairs) { return of_words(_mm256_slli_epi32(words(pairs), 16)); }
inline F32 high_bf16(F32 pairs) {
  return of_words(_mm256_and_si256(words(pairs), _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}
/// The nearest bfloat16, ties to even; subnormals are kept, a NaN is a quiet one.
inline F32 nearest_bf16(F32 x) {
  const __m256i bits = words(x), one = _mm256_set1_epi32(1);
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
  const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), even);
  const __m256 nan = _mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q);
  const F32 quiet = of_words(_mm256_or_si256(bits, _mm256_set1_epi32(0x00400000)));
  return high_bf16({_mm256_blendv_ps(of_words(up).v, quiet.v, nan)});
}
/// As an operand of math 'bf16': a subnormal is 0.
inline F32 round_bf16(F32 a) { return nearest_bf16(a * F32::broadcast(1.0f)); }
inline F32 load_bf16(const uint16_t* p, int64_t n) {
  uint16_t part[8] = {};
  for (int64_t i = 0; i < n; ++i) part[i] = p[i];
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(part));
  return of_words(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline void store_bf16(F32 a, uint16_t* p, int64_t n) {
  const __m256i high = _mm256_srli_epi32(words(nearest_bf16(a)), 16);
  uint16_t part[8];
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(part),
      _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
  for (int64_t i = 0; i < n; ++i) p[i] = part[i];
}
/// Four values of a staged row of int8: their magnitudes, and a mask of those below 0.
struct Int8Values {
  static constexpr int kWords = 2;
  __m256i magnitudes, negative;
  static Int8Values broadcast(const float* p) {
    return {words(F32::broadcast(p[0])), words(F32::broadcast(p[1]))};
  }
};
/// Words of four bytes: sum + the products of x and w, as integers, less |x| of every x below 0:
/// its w is inverted, which is -w - 1, and takes any port where a change of sign takes one of two.
/// A pair of products of at most 127 * 128 fits 16 bits, where one with x + 128 would saturate.
inline F32 dot_int8(const Int8Values& x, F32 w, F32 sum) {
  const __m256i with_signs = _mm256_xor_si256(words(w), x.negative);
  const __m256i pairs = _mm256_maddubs_epi16(x.magnitudes, with_signs);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  return of_words(_mm256_add_epi32(words(sum), fours));
}
/// What dot_int8 summed, as floats; `row` is the sum of |x| that it left out.
inline F32 int8_sum(F32 sum, const float* row, const float* /*weights*/) {
  return {_mm256_cvtepi32_ps(_mm256_add_epi32(words(sum), words(F32::broadcast(*row))))};
}
/// Values k and up of a staged row: integers, given as floats + 1.5 * 2^23. Adds the magnitudes of
/// those below 0 to `negatives`.
inline void store_int8(F32 shifted, float* row, int64_t k, F32& negatives) {
  const __m256i x = _mm256_sub_epi32(words(shifted), words(F32::broadcast(0x1.8p23f)));
  const __m256i magnitudes = _mm256_abs_epi32(x), negative = _mm256_srai_epi32(x, 31);
  const __m256i left_out = _mm256_and_si256(magnitudes, negative);
  negatives = of_words(_mm256_add_epi32(words(negatives), left_out));
  const __m256i halves = _mm256_packs_epi32(magnitudes, negative);
  const __m256i bytes = _mm256_packs_epi16(halves, halves);
  auto* const out = reinterpret_cast<__m128i*>(row + k / 4 * Int8Values::kWords);
  _mm_storeu_si128(out, _mm256_castsi256_si128(_mm256_permute4x64_epi64(bytes, 0xD8)));
}
