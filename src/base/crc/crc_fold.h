// Reflected 32-bit CRCs by carry-less multiplication, 64 bytes at a time: several times as fast as
// tables, and as memory.
#pragma once

#include "base/crc/crc_tables.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace openrnn {

/// x^n modulo the polynomial as the multiplication takes it: reflected, and shifted by the one bit
/// that a product of reflected factors is short of.
constexpr std::uint64_t power_of_x(std::uint32_t reflected_polynomial, int n) {
  std::uint32_t power = 0x80000000u;  // 1
  for (; n > 0; --n) power = (power >> 1) ^ ((power & 1) ? reflected_polynomial : 0);
  return std::uint64_t{power} << 1;
}

/// What moves 16 bytes over a distance: the first half by 32 bits more, the second by 32 less, as
/// the halves of 64 bits lie apart and a product has 32 bits too many.
struct FoldConstants {
  std::uint64_t first = 0, second = 0;
};
constexpr FoldConstants make_fold_constants(std::uint32_t reflected_polynomial, int bits) {
  return {power_of_x(reflected_polynomial, bits + 32), power_of_x(reflected_polynomial, bits - 32)};
}

/// For one polynomial: over four blocks of 128 bits, and over one.
struct CrcFold {
  FoldConstants over_four, over_one;
};
constexpr CrcFold make_crc_fold(std::uint32_t reflected_polynomial) {
  return {make_fold_constants(reflected_polynomial, 4 * 128),
          make_fold_constants(reflected_polynomial, 128)};
}

inline bool can_fold_crcs() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i folded(__m128i block,
                                                               const FoldConstants& constants,
                                                               __m128i next) {
  const __m128i by = _mm_set_epi64x(static_cast<long long>(constants.second),
                                    static_cast<long long>(constants.first));
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(block, by, 0x00), _mm_clmulepi64_si128(block, by, 0x11)),
      next);
}

/// As extend_crc; can_fold_crcs() is true.
__attribute__((target("pclmul,sse4.1"))) inline std::uint32_t extend_crc_by_folding(
    const CrcFold& fold, const CrcTables& tables, std::uint32_t crc, const void* data,
    std::size_t size) noexcept {
  constexpr std::size_t kBlock = 16, kFour = 4 * kBlock;
  if (size < kFour) return extend_crc(tables, crc, data, size);
  const auto* at = static_cast<const unsigned char*>(data);
  const auto load = [&](std::size_t block) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + block * kBlock));
  };
  __m128i a = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m128i b = load(1), c = load(2), d = load(3);
  for (at += kFour, size -= kFour; size >= kFour; at += kFour, size -= kFour) {
    a = folded(a, fold.over_four, load(0));
    b = folded(b, fold.over_four, load(1));
    c = folded(c, fold.over_four, load(2));
    d = folded(d, fold.over_four, load(3));
  }
  a = folded(folded(folded(a, fold.over_one, b), fold.over_one, c), fold.over_one, d);
  for (; size >= kBlock; at += kBlock, size -= kBlock) a = folded(a, fold.over_one, load(0));
  // All that was folded is as these 16 bytes from the start of a message, with nothing before them.
  unsigned char rest[kBlock];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return extend_crc(tables, extend_crc(tables, ~std::uint32_t{0}, rest, kBlock), at, size);
}

}  // namespace openrnn

#endif
