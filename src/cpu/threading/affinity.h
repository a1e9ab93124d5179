// Which processors the members of a team run on.
#pragma once

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include <atomic>
#include <cstddef>

namespace openrnn::cpu {

/// Where the members of the running job were last seen. A system may leave two of them on one
/// processor, beside an idle one, for many milliseconds, and giving the processor away does not
/// help where it hands out time in slices: then each waits for the other at every barrier. So a
/// worker that shares with another member is asked to run elsewhere, after which it may run
/// anywhere again. The thread of the caller is never moved. Only the first members are looked
/// after: it is small teams that suffer.
class Seats {
 public:
  void sit(int index) noexcept {
    if (index < kSeats) seats_[index].store(processor(), std::memory_order_relaxed);
  }
  /// For a worker, once.
  void enter(int index) noexcept {
    if (index < kSeats) threads_[index].store(this_thread(), std::memory_order_relaxed);
  }
  /// For a worker that ends: its number may become that of a thread of others.
  void leave(int index) noexcept {
    if (index < kSeats) threads_[index].store(0, std::memory_order_relaxed);
  }
  /// For the caller's thread, before a job of so many members.
  void clear(int members) noexcept {
    for (int i = 0; i < kSeats; ++i) {
      seats_[i].store(i < members ? kNotBegun : kAbsent, std::memory_order_relaxed);
    }
    sit(0);
  }
  /// Member `index` has waited for long: workers on its processor, or not seen yet, go elsewhere.
  void spread(int index) noexcept {
    if (index >= kSeats) return;
    sit(index);
    const int mine = seat(index);
    for (int i = 1; i < kSeats; ++i) {
      const bool here = seat(i) == mine || (index == 0 && seat(i) == kNotBegun);
      if (i != index && here) move(i);
    }
    if (index > 0 && seat(0) == mine) move(index);
  }

 private:
  static constexpr int kSeats = 16, kNotBegun = -1, kAbsent = -2;
  int seat(int i) const noexcept { return seats_[i].load(std::memory_order_relaxed); }

#if defined(__linux__)
  static int processor() noexcept { return sched_getcpu(); }
  static int this_thread() noexcept { return static_cast<int>(gettid()); }
  void move(int i) noexcept {
    // Two at once could take the mask of the moment for the one to restore.
    if (moving_.test_and_set(std::memory_order_acquire)) return;
    move_alone(i, threads_[i].load(std::memory_order_relaxed));
    moving_.clear(std::memory_order_release);
  }
  void move_alone(int i, int thread) noexcept {
    cpu_set_t allowed, free;
    if (thread == 0 || sched_getaffinity(thread, sizeof(allowed), &allowed) != 0) return;
    free = allowed;
    for (int other = 0; other < kSeats; ++other) {
      if (other != i && seat(other) >= 0 && seat(other) < CPU_SETSIZE) {
        CPU_CLR(static_cast<std::size_t>(seat(other)), &free);
      }
    }
    if (CPU_COUNT(&free) == 0 || sched_setaffinity(thread, sizeof(free), &free) != 0) return;
    sched_setaffinity(thread, sizeof(allowed), &allowed);
  }
#else
  static int processor() noexcept { return kNotBegun; }
  static int this_thread() noexcept { return 0; }
  void move(int) noexcept {}
#endif

  std::atomic<int> seats_[kSeats] = {}, threads_[kSeats] = {};
  std::atomic_flag moving_ = ATOMIC_FLAG_INIT;
};

}  // namespace openrnn::cpu
