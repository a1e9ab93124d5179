#include "base/hash/content_hash.h"

#include <algorithm>
#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Blocks are summed as (a + k) * (b + l) over pairs of words a, b with keys k, l of their place
// (NH: J. Black, S. Halevi, H. Krawczyk, T. Krovetz, P. Rogaway, "UMAC", 1999): whatever two blocks
// differ in, one choice of keys in 2^n gives them equal sums, for words of n bits. No sum waits for
// a product. After each block a map that loses nothing takes the sums, so that the order of blocks
// counts.

namespace openrnn {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr std::size_t kWord = sizeof(std::uint64_t);
using Keys = std::array<std::uint64_t, kBlock / kWord>;
constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;

// SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014.
constexpr std::uint64_t scrambled(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
  return value ^ (value >> 31U);
}

constexpr Keys make_keys(std::uint64_t state) {
  Keys keys{};
  for (std::uint64_t& key : keys) key = scrambled(state += kOdd);
  return keys;
}

alignas(64) constexpr Keys kKeys = make_keys(1);
// Of the second sum, where words have 32 bits.
alignas(64) constexpr Keys kOthers = make_keys(2);
constexpr long long kOdd32 = 0x9e3779b1;

std::uint64_t scrambled_sums(std::uint64_t hash, std::span<const std::uint64_t> sums) noexcept {
  for (const std::uint64_t sum : sums) hash = scrambled((hash ^ sum) + kOdd);
  return hash;
}

std::uint64_t word(const unsigned char* at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, kWord);
  return value;
}

__extension__ using Wide = unsigned __int128;

/// On any processor: words of 64 bits.
class PortableSums {
 public:
  static constexpr std::size_t kStep = 32;
  explicit PortableSums(std::uint64_t seed) noexcept : hash_(seed) {}

  /// `bytes` is a multiple of kStep, at most kBlock.
  void add(const unsigned char* at, std::size_t bytes) noexcept {
    Wide even = 0, odd = 0;
    for (std::size_t i = 0; i < bytes; i += 4 * kWord, at += 4 * kWord) {
      const std::uint64_t* const keys = &kKeys[i / kWord];
      even += static_cast<Wide>(word(at) + keys[0]) * (word(at + kWord) + keys[1]);
      odd += static_cast<Wide>(word(at + 2 * kWord) + keys[2]) * (word(at + 3 * kWord) + keys[3]);
    }
    for (const Wide sum : {even, odd}) {
      hash_ = scrambled(hash_ + static_cast<std::uint64_t>(sum)) + kOdd;
      hash_ = scrambled(hash_ ^ static_cast<std::uint64_t>(sum >> 64U));
    }
  }

  std::uint64_t hash() const noexcept { return hash_; }

 private:
  std::uint64_t hash_;
};

#if defined(__x86_64__)
#define OPENRNN_AVX2 __attribute__((target("avx2")))

/// Words of 32 bits, so that each place adds to two sums, by keys of their own.
class Avx2Sums {
 public:
  static constexpr std::size_t kStep = 32;
  OPENRNN_AVX2 explicit Avx2Sums(std::uint64_t seed) noexcept
      : first_(_mm256_set1_epi64x(static_cast<long long>(seed))), second_(first_), seed_(seed) {}

  /// As PortableSums::add.
  OPENRNN_AVX2 void add(const unsigned char* at, std::size_t bytes) noexcept {
    const auto* const words = reinterpret_cast<const __m256i*>(at);
    const auto* const keys = reinterpret_cast<const __m256i*>(kKeys.data());
    const auto* const others = reinterpret_cast<const __m256i*>(kOthers.data());
    __m256i first = first_, second = second_;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < bytes / sizeof(__m256i); ++i) {
      const __m256i each = _mm256_loadu_si256(words + i);
      const __m256i a = _mm256_add_epi32(each, _mm256_load_si256(keys + i));
      const __m256i b = _mm256_add_epi32(each, _mm256_load_si256(others + i));
      first = _mm256_add_epi64(first, _mm256_mul_epu32(a, _mm256_srli_epi64(a, 32)));
      second = _mm256_add_epi64(second, _mm256_mul_epu32(b, _mm256_srli_epi64(b, 32)));
    }
    first_ = mixed_sums(first);
    second_ = mixed_sums(second);
  }

  OPENRNN_AVX2 std::uint64_t hash() const noexcept {
    std::array<std::uint64_t, 8> sums{};
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums.data()), first_);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums.data() + 4), second_);
    return scrambled_sums(seed_, sums);
  }

 private:
  // x ^ (x >> 29), times an odd number of 32 bits; each can be undone.
  OPENRNN_AVX2 static __m256i mixed_sums(__m256i sums) noexcept {
    const __m256i odd = _mm256_set1_epi64x(kOdd32);
    const __m256i mixed = _mm256_xor_si256(sums, _mm256_srli_epi64(sums, 29));
    const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), odd);
    return _mm256_add_epi64(_mm256_mul_epu32(mixed, odd), _mm256_slli_epi64(high, 32));
  }

  __m256i first_, second_;
  std::uint64_t seed_;
};

#undef OPENRNN_AVX2
#define OPENRNN_AVX512 __attribute__((target("avx512f")))

/// As Avx2Sums, twice as wide.
class Avx512Sums {
 public:
  static constexpr std::size_t kStep = 64;
  OPENRNN_AVX512 explicit Avx512Sums(std::uint64_t seed) noexcept
      : first_(_mm512_set1_epi64(static_cast<long long>(seed))), second_(first_), seed_(seed) {}

  OPENRNN_AVX512 void add(const unsigned char* at, std::size_t bytes) noexcept {
    __m512i first = first_, second = second_;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < bytes; i += kStep) {
      const __m512i each = _mm512_loadu_si512(at + i);
      const __m512i a = _mm512_add_epi32(each, _mm512_load_si512(&kKeys[i / kWord]));
      const __m512i b = _mm512_add_epi32(each, _mm512_load_si512(&kOthers[i / kWord]));
      first = _mm512_add_epi64(first, _mm512_mul_epu32(a, _mm512_srli_epi64(a, 32)));
      second = _mm512_add_epi64(second, _mm512_mul_epu32(b, _mm512_srli_epi64(b, 32)));
    }
    first_ = mixed_sums(first);
    second_ = mixed_sums(second);
  }

  OPENRNN_AVX512 std::uint64_t hash() const noexcept {
    std::array<std::uint64_t, 16> sums{};
    _mm512_storeu_si512(sums.data(), first_);
    _mm512_storeu_si512(sums.data() + 8, second_);
    return scrambled_sums(seed_, sums);
  }

 private:
  OPENRNN_AVX512 static __m512i mixed_sums(__m512i sums) noexcept {
    const __m512i odd = _mm512_set1_epi64(kOdd32);
    const __m512i mixed = _mm512_xor_si512(sums, _mm512_srli_epi64(sums, 29));
    const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(mixed, 32), odd);
    return _mm512_add_epi64(_mm512_mul_epu32(mixed, odd), _mm512_slli_epi64(high, 32));
  }

  __m512i first_, second_;
  std::uint64_t seed_;
};
#undef OPENRNN_AVX512
#endif

template <class Sums>
std::uint64_t hash_by(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
  constexpr std::size_t kStep = Sums::kStep;
  const auto* at = static_cast<const unsigned char*>(data);
  Sums sums(scrambled(seed ^ bytes) + seed);
  std::size_t left = bytes;
  while (left >= kStep) {
    const std::size_t size = std::min(left / kStep * kStep, kBlock);
    sums.add(at, size);
    at += size;
    left -= size;
  }
  if (left > 0) {
    std::array<unsigned char, kStep> last{};
    std::memcpy(last.data(), at, left);
    sums.add(last.data(), kStep);
  }
  return sums.hash();
}

struct Known {
  std::array<ContentHash, 3> hashes{};
  std::size_t count = 0;
};

Known find_hashes() noexcept {
  Known known;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) known.hashes[known.count++] = hash_by<Avx512Sums>;
  if (__builtin_cpu_supports("avx2")) known.hashes[known.count++] = hash_by<Avx2Sums>;
#endif
  known.hashes[known.count++] = hash_by<PortableSums>;
  return known;
}

}  // namespace

std::span<const ContentHash> content_hashes() noexcept {
  static const Known known = find_hashes();
  return {known.hashes.data(), known.count};
}

std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
  static const ContentHash best = content_hashes()[0];
  return best(data, bytes, seed);
}

}  // namespace openrnn
