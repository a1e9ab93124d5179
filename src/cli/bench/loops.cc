#include "cli/bench/loops.h"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace openrnn::cli {
namespace {

// Latency 4 times two units a cycle is 8 chains; 16 leave room and fit in the registers of all.
constexpr int kChains = 16;
volatile float sink;

#if defined(__x86_64__)
constexpr int kNarrowChains = 12;  // 16 registers of 256 bits hold these and the factors

__attribute__((target("avx512f"))) double fma_avx512(long iterations) {
  __m512 chains[kChains];
  for (auto& chain : chains) chain = _mm512_set1_ps(0.5F);
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
  for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 16
    for (auto& chain : chains) chain = _mm512_fmadd_ps(chain, factor, term);
  }
  float sum = 0.0F;
  for (auto& chain : chains) sum += _mm512_cvtss_f32(chain);
  sink = sum;
  return 2.0 * 16 * kChains * static_cast<double>(iterations);
}

__attribute__((target("avx2,fma"))) double fma_avx2(long iterations) {
  __m256 chains[kNarrowChains];
  for (auto& chain : chains) chain = _mm256_set1_ps(0.5F);
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
  for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (auto& chain : chains) chain = _mm256_fmadd_ps(chain, factor, term);
  }
  float sum = 0.0F;
  for (auto& chain : chains) sum += _mm256_cvtss_f32(chain);
  sink = sum;
  return 2.0 * 8 * kNarrowChains * static_cast<double>(iterations);
}

__attribute__((target("avx512f"))) void read_avx512(const float* data, std::size_t count) {
  __m512i sums[8];
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  for (std::size_t i = 0; i < count; i += 128) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) {
      sums[k] = _mm512_xor_si512(sums[k], _mm512_loadu_si512(data + i + 16 * k));
    }
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm512_xor_si512(sums[0], sums[k]);
  sink = static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sums[0])));
}

__attribute__((target("avx2"))) void read_avx2(const float* data, std::size_t count) {
  __m256i sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (std::size_t i = 0; i < count; i += 64) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) {
      const auto* at = reinterpret_cast<const __m256i*>(data + i + 8 * k);
      sums[k] = _mm256_xor_si256(sums[k], _mm256_loadu_si256(at));
    }
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm256_xor_si256(sums[0], sums[k]);
  sink = static_cast<float>(_mm_cvtsi128_si32(_mm256_castsi256_si128(sums[0])));
}
#endif

constexpr int kLanes = 4;  // as NEON has

double fma_plain(long iterations) {
  float chains[kChains * kLanes];
  for (float& chain : chains) chain = 0.5F;
  for (long i = 0; i < iterations; ++i) {
    for (float& chain : chains) chain = std::fma(chain, 0.999F, 0.001F);
  }
  float sum = 0.0F;
  for (const float chain : chains) sum += chain;
  sink = sum;
  return 2.0 * kLanes * kChains * static_cast<double>(iterations);
}

void read_plain(const float* data, std::size_t count) {
  float sums[64] = {};
  for (std::size_t i = 0; i < count; i += 64) {
    for (std::size_t k = 0; k < 64; ++k) sums[k] += data[i + k];
  }
  float sum = 0.0F;
  for (const float part : sums) sum += part;
  sink = sum;
}

}  // namespace

double fma_loop(long iterations) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return fma_avx512(iterations);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fma_avx2(iterations);
#endif
  return fma_plain(iterations);
}

void read_loop(const float* data, std::size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_avx512(data, count);
  if (__builtin_cpu_supports("avx2")) return read_avx2(data, count);
#endif
  read_plain(data, count);
}

}  // namespace openrnn::cli
