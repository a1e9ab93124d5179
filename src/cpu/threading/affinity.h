// Which processors the members of a job run on, and moving workers apart.
#pragma once

#include <atomic>

namespace openrnn::cpu {

/// Whether workers are moved apart: at first unless OPENRNN_SPREAD_THREADS is 0. See
/// openrnn::set_spread_threads.
bool spreads_threads() noexcept;
void set_spreads_threads(bool spread) noexcept;

/// Where the members of the running job were last seen. A system may leave two of them on one
/// processor, beside an idle one, for many milliseconds, and yielding does not help where it hands
/// out time in slices: then each waits for the other at every barrier. So a worker that shares a
/// processor with another member is moved: for a moment its affinity mask leaves out the processors
/// of the others, then the mask is as it was. The caller's thread is never moved, and no mask gets
/// a processor that it did not have. Only the first 16 members are looked after: on more threads
/// one that is late matters less.
class Placement {
 public:
  /// Called by every member as it begins its part.
  void seen(int index) noexcept;
  /// By a worker, when it starts and before it ends: its id may become that of a thread of others.
  void enter(int index) noexcept;
  void leave(int index) noexcept;
  /// Called before a job of that many members; 0: its threads are a host's, which stay where they
  /// are.
  void begin(int members) noexcept;
  /// By member `index` in a long wait: workers on its processor, or not seen yet, are moved.
  void spread(int index) noexcept;
  /// How many were moved so far.
  int moves() const noexcept { return moves_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMembers = 16, kNotBegun = -1, kAbsent = -2;
  int processor_of(int i) const noexcept { return processors_[i].load(std::memory_order_relaxed); }
  void move(int i) noexcept;
  void move_thread(int i, int thread) noexcept;

  std::atomic<int> processors_[kMembers] = {}, threads_[kMembers] = {};
  std::atomic_flag moving_ = ATOMIC_FLAG_INIT;
  std::atomic<int> moves_{0};
};

/// That of the pool of the process.
extern Placement placement;

}  // namespace openrnn::cpu
