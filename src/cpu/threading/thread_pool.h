// The workers of the process, and their job.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "cpu/threading/contention.h"
#include "cpu/threading/latency.h"
#include "cpu/threading/waits.h"
#include "cpu/threading/wake_up.h"

namespace openrnn::cpu {

/// One worker: its place in the pool, and the thread in it.
struct Worker {
  WakeUp wake_up;
  // The thread that sets it does this member's part: the worker, or the caller if it is done first.
  std::atomic<bool> begun{true};
  double waited = 0;  // seconds of the last job; written by the worker
  pthread_t thread{};
  std::uint32_t seen = 0;  // the wake-up's count when the thread was started
};

/// Members 1 to `workers` of a job are workers, member 0 is the thread that called. One lease at a
/// time has the pool; functions are for the thread that has it, but for work().
struct alignas(64) ThreadPool {
  static constexpr int kMostWorkers = 1023;

  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::atomic<int> ending{0};          // threads in end_workers: no lease takes the pool meanwhile
  std::atomic<bool> dismissed{false};  // a worker that is woken ends
  std::atomic<int> working{0};         // workers that have not finished their part
  Job job;
  int workers = 0;
  bool alone = false;  // the caller finishes the job without the others
  Contention contention;
  BarrierLatency latency;
  Worker members[kMostWorkers + 1];

  /// Starts workers until there are `count`, or as many as the system grants.
  void grow(int count);
  /// Ends all workers.
  void dismiss() noexcept;
  /// Wakes the members of `job`, and no others.
  void wake_members() noexcept;
  /// Leaves the parts of its members to threads of a host.
  void offer_parts() noexcept;
  /// For a thread of a host: does that part, unless the caller has begun it.
  void do_part_of_host(int member) noexcept;
  /// Does one part of the job on this thread.
  void do_part(int member) noexcept;
  /// For the caller, done with its own part: does those that no worker has begun. Returns how many.
  int do_what_is_left() noexcept;
  /// Seconds that the member that waited longest has waited.
  double longest_wait() const noexcept;

  /// What a worker's thread runs.
  void work(int member) noexcept;
};

/// The pool of the process. Never destroyed: static objects of others may compute when they are.
extern ThreadPool pool;

}  // namespace openrnn::cpu
