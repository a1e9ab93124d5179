#include "peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cmath>
#endif

namespace openrnn::bench {
namespace {

// Twelve chains hide the latency of an fma on every processor known; their values stay finite.
constexpr int kChains = 12;
volatile float sink;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void run512(long rounds) {
  const __m512 x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(0.25f);
  __m512 a[kChains];
  for (__m512& v : a) v = x;
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) a[j] = _mm512_fmadd_ps(a[j], y, x);
  }
  for (int j = 1; j < kChains; ++j) a[0] = _mm512_add_ps(a[0], a[j]);
  sink = _mm512_cvtss_f32(a[0]);
}

__attribute__((target("avx2,fma"))) void run256(long rounds) {
  const __m256 x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(0.25f);
  __m256 a[kChains];
  for (__m256& v : a) v = x;
  for (long i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) a[j] = _mm256_fmadd_ps(a[j], y, x);
  }
  for (int j = 1; j < kChains; ++j) a[0] = _mm256_add_ps(a[0], a[j]);
  sink = _mm256_cvtss_f32(a[0]);
}
#endif

}  // namespace

double fma_work(long rounds) {
  constexpr double kPerRound = 2.0 * kChains;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    run512(rounds);
    return kPerRound * 16 * static_cast<double>(rounds);
  }
  run256(rounds);
  return kPerRound * 8 * static_cast<double>(rounds);
#else
  float a[kChains] = {};
  for (long i = 0; i < rounds; ++i) {
    for (float& v : a) v = std::fma(v, 0.25f, 0.5f);
  }
  sink = a[0];
  return kPerRound * static_cast<double>(rounds);
#endif
}

}  // namespace openrnn::bench
