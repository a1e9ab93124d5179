// What this machine can do at best, measured beside every figure.
#pragma once

#include <chrono>
#include <thread>
#include <vector>

namespace openrnn::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Fused multiply-adds of one thread, in floating-point operations of float32.
double fma_work(long rounds);

/// Billions of float32 operations a second of `threads` threads that only multiply and add.
inline double fma_peak(int threads) {
  constexpr long kRounds = 200000;
  std::vector<std::thread> others;
  double work = 0;
  const double start = seconds_now();
  for (int i = 1; i < threads; ++i) others.emplace_back([] { fma_work(kRounds); });
  work = fma_work(kRounds) * threads;
  for (std::thread& other : others) other.join();
  return work / (seconds_now() - start) / 1e9;
}

}  // namespace openrnn::bench
