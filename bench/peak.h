// What this machine can do at best, measured beside every figure.
#pragma once

#include <chrono>
#include <vector>

#include "cpu/run/team.h"

namespace openrnn::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Fused multiply-adds of one thread, in floating-point operations of float32.
double fma_work(long rounds);

/// Billions of float32 operations a second of `threads` threads that only multiply and add.
inline double fma_peak(int threads) {
  constexpr long kRounds = 100000;
  std::vector<double> speeds(static_cast<std::size_t>(threads));
  cpu::TeamLease lease(threads);
  lease.run([&](int thread) {
    const double start = seconds_now();
    const double work = fma_work(kRounds);
    speeds[static_cast<std::size_t>(thread)] = work / (seconds_now() - start) / 1e9;
  });
  double sum = 0;
  for (const double speed : speeds) sum += speed;
  return sum;
}

}  // namespace openrnn::bench
