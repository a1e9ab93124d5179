// A team of threads that lives until it is ended or this library goes, and the barrier of its
// members.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace openrnn::cpu {

/// A short wait inside a spinning loop; every so many rounds it gives the processor away.
void relax(unsigned round) noexcept;

/// Members of a job of the team spin until all have come. Reusable at once.
class alignas(64) Barrier {
 public:
  /// Whether somebody found that one thread would have been faster: every member is told the same.
  bool wait(int members) noexcept;

 private:
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};  // odd when its end told to go on alone
  std::atomic<bool> late_{false};
};

/// For the caller of a job whose other members left it at a barrier.
void went_on_alone() noexcept;

/// Threads of a call that may have `max_threads` at most; 0: as many as num_threads() says.
int most_threads(int max_threads);

/// How many of `most` threads `work` is worth: one below `alone`, and half of that for each of
/// more.
int threads_for(double work, double alone, int most) noexcept;

/// What ThreadLease::barrier_latency() is to answer, 0 for what it measures; returns what it was.
/// So that tests divide their calls alike, wherever they run.
double assume_barrier_latency(double seconds) noexcept;

/// Whether leases give way to other programs (contention.h); returns whether they did. For tests
/// that want their threads wherever they run.
bool heed_contention(bool minding) noexcept;

/// What is known of the contention is forgotten, as in a new process. Not while others compute.
void forget_contention() noexcept;

/// Jobs since the start of the process that their callers finished alone.
int jobs_finished_alone() noexcept;

/// Called by every member inside its pieces: as it begins its part of a job, and before it comes to
/// a barrier. For tests, which delay members; null again for nothing.
using PieceHook = void (*)(int member);
void hook_pieces(PieceHook hook) noexcept;

/// Ends the workers of the team and waits until they are gone; a job that runs is finished first.
/// The next lease that wants threads starts new ones. Any thread may call it, outside of jobs.
void end_workers() noexcept;

/// The right to use the team until it goes. Who finds the team taken, or being ended, works alone;
/// so does, for a while, who would wait for workers that have lost their cores to other programs.
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
  /// Lets go of all but the first `count`; of the team, too, when one is left.
  void keep(int count) noexcept;
  /// Seconds that two threads of this team need to meet at a barrier and read a line that the other
  /// has just written; 0 for one thread. Measured now and then: where threads run may change.
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

 private:
  using Function = void (*)(void* context, int thread);
  void run_job(Function function, void* context) noexcept;
  void leave() noexcept;
  double measure_meeting() noexcept;
  void heed_company() noexcept;
  double alone_ = 0;
  bool leads_ = false;
  int threads_ = 1;
};

/// The part of [0, size) that member `index` of `count` takes, in whole units of `grain`.
struct Share {
  std::int64_t first, last;
  Share(std::int64_t size, std::int64_t grain, int index, int count);
};

}  // namespace openrnn::cpu
