// A lease on the thread pool of the process, which exists until it is ended or this library is
// unloaded.
#pragma once

#include <type_traits>

#include "cpu/threading/share.h"
#include "cpu/threading/waits.h"

namespace openrnn::cpu {

/// For the caller of a job whose other members left it at a barrier.
void went_on_alone() noexcept;

/// Sets the result of ThreadLease::barrier_latency(), 0: the measured one; returns the value
/// before. So that tests divide their calls alike, wherever they run.
double assume_barrier_latency(double seconds) noexcept;

/// Whether leases give way to other programs (contention.h); returns whether they did. For tests
/// that want their threads wherever they run.
bool heed_contention(bool heed) noexcept;

/// Forgets what is known of contention, as in a new process. Not while others compute.
void forget_contention() noexcept;

/// Where this thread's leases from now on have their threads, null: the pool's workers; returns
/// where they had them. See openrnn::HostThreads.
using HostThreads = void (*)(int count, void (*part)(void* context, int member), void* context);
HostThreads exchange_host_threads(HostThreads host) noexcept;

/// Jobs since the start of the process that their callers finished alone.
int jobs_finished_alone() noexcept;

/// Ends the workers of the pool and waits until they are gone; a job that runs is finished first.
/// The next lease that wants threads starts new ones. Any thread may call it, outside of jobs.
void end_workers() noexcept;

/// A lease on the thread pool, released by the destructor. Only one at a time has workers: one that
/// finds the pool taken, or being ended, runs single-threaded; so does, for a while, one whose
/// workers have lost their processors to other programs.
class ThreadLease {
 public:
  /// Asks for `wanted` threads, this one included, for a job that would take one thread `alone`
  /// seconds, 0 for a short one. One thread takes no lock and makes no system call.
  explicit ThreadLease(int wanted, double alone = 0);
  ~ThreadLease();
  ThreadLease(const ThreadLease&) = delete;
  ThreadLease& operator=(const ThreadLease&) = delete;

  /// Threads that run() will use: at most what was wanted, or kept.
  int threads() const noexcept { return threads_; }
  /// Releases all but the first `count`; the whole pool when one is left.
  void keep(int count) noexcept;
  /// Seconds that two threads of the pool need to pass a barrier and read a cache line that the
  /// other has just written; 0 for one thread. Measured now and then, since threads may be moved.
  double barrier_latency() noexcept;
  /// Calls job(thread) for every thread, 0 being the caller, and returns when all are done. What
  /// no worker has begun when the caller is done with its own, the caller does. `job` must not
  /// throw.
  template <class Job>
  void run(Job&& job) noexcept {
    run_job([](void* context,
               int thread) { (*static_cast<std::remove_reference_t<Job>*>(context))(thread); },
            &job);
  }

  /// Whether this thread has the pool.
  static bool is_held_here() noexcept;
  /// For a forked child, where no lease has the pool.
  static void forget() noexcept;

 private:
  using Function = void (*)(void* context, int thread);
  void run_job(Function function, void* context) noexcept;
  void run_members(Function function, void* context, double least_wait) noexcept;
  void run_on_host() noexcept;
  void do_own_parts() noexcept;
  void leave() noexcept;
  double measure_latency() noexcept;
  void give_way() noexcept;
  HostThreads host_ = nullptr;
  double alone_ = 0;
  bool leads_ = false;
  int threads_ = 1, taken_over_ = 0;
};

}  // namespace openrnn::cpu
