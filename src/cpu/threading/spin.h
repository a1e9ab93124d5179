// How a thread waits for another one: it spins, and yields its processor now and then.
#pragma once

#include <sched.h>

#include <chrono>

namespace openrnn::cpu {

/// Rounds of `pause` (10 to 50 ns each) before a waiting thread yields its processor. Another
/// program may take a processor, so that two members share one; then each wait costs as long as the
/// waiting thread keeps it. With nothing else to run, that returns at once.
inline constexpr unsigned kSpinsBeforeYield = 128;

/// Whether a wait yields its processor in this round.
inline bool is_long_wait(unsigned round) noexcept {
  return round % kSpinsBeforeYield == kSpinsBeforeYield - 1;
}

/// One round of a spinning loop.
inline void relax(unsigned round) noexcept {
  if (is_long_wait(round)) {
    sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The clock by which waits and jobs are measured.
inline double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace openrnn::cpu
