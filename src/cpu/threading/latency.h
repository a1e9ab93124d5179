// The barrier latency of two threads.
#pragma once

#include <atomic>
#include <chrono>

#include "cpu/threading/barrier.h"

namespace openrnn::cpu {

/// The job of two members that measures it: a barrier, then reading a cache line that the other
/// member has just written.
class LatencyProbe {
 public:
  void run(int member) noexcept;
  /// The least of some rounds: the first ones may wake a worker, and any may be interrupted.
  /// Infinity when a member was late at once.
  double seconds() const noexcept { return least_; }

 private:
  struct alignas(64) Line {
    std::atomic<int> number{0};
  };
  Line lines_[2];
  Barrier barrier_;
  double least_ = __builtin_inf();
};

/// The last measurement, and until when it is used.
class BarrierLatency {
 public:
  using Clock = std::chrono::steady_clock;

  bool is_known(Clock::time_point now) const noexcept { return now < believed_until_; }
  /// `measured`, unless it is infinite, was measured from `start` to `end`.
  void tell(double measured, Clock::time_point start, Clock::time_point end) noexcept;
  double seconds() const noexcept { return seconds_; }

 private:
  double seconds_ = 1e-6;
  Clock::time_point believed_until_{};
};

}  // namespace openrnn::cpu
