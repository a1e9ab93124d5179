// The wake-up of a worker for a job.
#pragma once

#include <atomic>
#include <cstdint>

#include "cpu/threading/spin.h"

namespace openrnn::cpu {

/// A counter that one thread raises and one worker awaits. The worker spins first, then sleeps; it
/// says so before it sleeps, since waking it costs a system call.
class alignas(64) WakeUp {
 public:
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  void raise() noexcept {
    count_.fetch_add(1);
    if (asleep_.load()) count_.notify_one();
  }
  /// Returns the count that follows `seen`.
  std::uint32_t await(std::uint32_t seen) noexcept {
    for (unsigned i = 0; i < kSpinsBeforeSleep && count() == seen; ++i) relax(i);
    if (count() == seen) {
      // Sequentially consistent, as raise() is: it sees asleep_, or wait() sees the new count.
      asleep_.store(true);
      count_.wait(seen);
      asleep_.store(false, std::memory_order_relaxed);
    }
    return count();
  }

 private:
  /// Some tens of microseconds: the time between two calls of a loop over small networks.
  static constexpr unsigned kSpinsBeforeSleep = 4000;

  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> asleep_{false};
};

}  // namespace openrnn::cpu
