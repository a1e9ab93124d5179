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

std::uint64_t word(const unsigned char* at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, kWord);
  return value;
}

__extension__ using Wide = unsigned __int128;

/// On any processor: words of 64 bits.
class PortableSums {
 public:
  explicit PortableSums(std::uint64_t seed) noexcept : hash_(seed) {}

  /// `bytes` is a multiple of 32, at most kBlock.
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
    std::uint64_t hash = seed_;
    for (const std::uint64_t sum : sums) hash = scrambled((hash ^ sum) + kOdd);
    return hash;
  }

 private:
  alignas(64) static constexpr Keys kOthers = make_keys(2);

  // x ^ (x >> 29), times an odd number of 32 bits; each can be undone.
  OPENRNN_AVX2 static __m256i mixed_sums(__m256i sums) noexcept {
    const __m256i odd = _mm256_set1_epi64x(0x9e3779b1);
    const __m256i mixed = _mm256_xor_si256(sums, _mm256_srli_epi64(sums, 29));
    const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), odd);
    return _mm256_add_epi64(_mm256_mul_epu32(mixed, odd), _mm256_slli_epi64(high, 32));
  }

  __m256i first_, second_;
  std::uint64_t seed_;
};
#undef OPENRNN_AVX2
#endif

template <class Sums>
std::uint64_t hash_by(const unsigned char* at, std::size_t bytes, std::uint64_t seed) noexcept {
  constexpr std::size_t kStep = 32;
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

}  // namespace

std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return hash_by<Avx2Sums>(static_cast<const unsigned char*>(data), bytes, seed);
  }
#endif
  return portable_content_hash(data, bytes, seed);
}

std::uint64_t portable_content_hash(const void* data, std::size_t bytes,
                                    std::uint64_t seed) noexcept {
  return hash_by<PortableSums>(static_cast<const unsigned char*>(data), bytes, seed);
}

}  // namespace openrnn
