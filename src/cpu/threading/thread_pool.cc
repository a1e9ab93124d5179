#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "cpu/threading/affinity.h"
#include "cpu/threading/contention.h"
#include "cpu/threading/subnormals.h"
#include "cpu/threading/thread_lease.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

// Rounds of `pause`, each some 10 to 50 ns. When another program takes a processor, two members may
// share one: then whoever waits must give it away within microseconds, or every step of a call
// costs as much. With nobody else to run, giving away returns at once.
constexpr unsigned kSpinsBeforeYield = 128;
// Some tens of microseconds before a worker without work goes to sleep.
constexpr unsigned kSpinsBeforeSleep = 4000;
// How long a measured meeting is believed: so many times what measuring it took, within limits. A
// virtual machine may find its processors on cores of one cache now and far from each other a
// second later; on a busy one even measuring takes milliseconds.
constexpr std::chrono::milliseconds kMeetingLasts{20}, kMeetingLastsAtMost{1000};
constexpr int kMeetingPays = 100;

double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool long_wait(unsigned round) { return round % kSpinsBeforeYield == kSpinsBeforeYield - 1; }

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constinit Seats seats;
// Which member of a job this thread is.
constinit thread_local int my_index = 0;
constinit std::atomic<PieceHook> piece_hook{nullptr};
void at_piece(int member) noexcept {
  if (const PieceHook hook = piece_hook.load(std::memory_order_relaxed)) hook(member);
}
// Whether this thread leads the team.
constinit thread_local bool leading = false;

// Where a worker is told of a job: its number changes. Who sleeps says so first, as waking somebody
// costs a system call.
class alignas(64) Call {
 public:
  std::uint32_t number() const noexcept { return number_.load(std::memory_order_acquire); }
  void tell() noexcept {
    number_.fetch_add(1);
    if (asleep_.load()) number_.notify_one();
  }
  /// Returns the number that follows `seen`.
  std::uint32_t await(std::uint32_t seen) noexcept {
    for (unsigned i = 0; i < kSpinsBeforeSleep && number() == seen; ++i) relax(i);
    if (number() == seen) {
      // In one order with tell(): it sees the one, or this thread the other.
      asleep_.store(true);
      number_.wait(seen);
      asleep_.store(false, std::memory_order_relaxed);
    }
    return number();
  }

 private:
  std::atomic<std::uint32_t> number_{0};
  std::atomic<bool> asleep_{false};
};

/// What the members of a job are told.
struct Job {
  void (*function)(void*, int) = nullptr;
  void* context = nullptr;
  int members = 1;
  double begun = 0, least = 0;  // when it began; waits that tell nothing
};

/// How long this thread has waited for other members of its job. Only long waits are looked at,
/// those that give the processor away.
class Waits {
 public:
  void begin(const Job& job) noexcept {
    least_ = job.least;
    members_ = job.members;
    window_ = job.begun;
    all_ = in_window_ = since_ = 0;
  }
  /// Inside a long wait. Whether so much of the last time went into waiting that one thread alone
  /// would have been faster.
  bool too_long() noexcept {
    const double now = seconds_now();
    if (since_ == 0) {
      since_ = now;
      // A long job looks back no further than it needs.
      if (now - window_ > std::max(kWindow, 4 * least_)) {
        window_ = now;
        in_window_ = 0;
      }
    }
    const double waited = in_window_ + now - since_;
    return waited >= least_ && gained({now - window_, waited}, members_) < 0;
  }
  /// After any wait.
  void over() noexcept {
    if (since_ == 0) return;
    const double waited = seconds_now() - std::exchange(since_, 0.0);
    all_ += waited;
    in_window_ += waited;
  }
  double all() const noexcept { return all_; }

 private:
  static constexpr double kWindow = 10e-3;
  double least_ = 0, window_ = 0, in_window_ = 0, since_ = 0, all_ = 0;
  int members_ = 1;
};
constinit thread_local Waits waits;

/// A place of the team, and the thread in it.
struct Worker {
  Call call;
  // Whoever sets it does this member's part: the worker, or the caller when it is done before.
  std::atomic<bool> begun{true};
  double waited = 0;  // of the last job; written by the worker
  pthread_t thread{};
  std::uint32_t seen = 0;  // the call's number when the thread was started
};

struct alignas(64) Team {
  static constexpr int kMostWorkers = 1023;

  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::atomic<int> ending{0};          // who ends the team, or waits to: nobody takes it meanwhile
  std::atomic<bool> dismissed{false};  // a worker that is called goes
  std::atomic<int> working{0};
  Job job;
  int workers = 0;
  bool alone = false;  // the caller goes on without the others
  Contention contention;
  // For whoever has the team: what a meeting took, and when it is to be measured again.
  double meeting = 1e-6;
  std::chrono::steady_clock::time_point believed_until{};
  Worker members[kMostWorkers + 1];

  void work(int index) noexcept {
    const FlushSubnormals flush;
    my_index = index;
    seats.enter(index);
    Worker& self = members[index];
    for (std::uint32_t seen = self.seen;;) {
      seen = self.call.await(seen);
      if (dismissed.load(std::memory_order_relaxed)) return seats.leave(index);
      // Who was told of a job that is over may find the next one here, and is told of it again.
      if (self.begun.exchange(true, std::memory_order_acquire)) continue;
      seats.sit(index);
      waits.begin(job);
      do_part(index);
      self.waited = waits.all();
      working.fetch_sub(1, std::memory_order_release);
    }
  }
  void do_part(int index) noexcept {
    at_piece(index);
    job.function(job.context, index);
  }
  // Only the members of a job are woken.
  void call_members() noexcept {
    working.store(job.members - 1, std::memory_order_relaxed);
    for (int i = 1; i < job.members; ++i) {
      members[i].waited = 0;
      members[i].begun.store(false, std::memory_order_release);
      members[i].call.tell();
    }
  }
  // For the caller, done with its own part: those of workers that have not come yet.
  int do_what_is_left() noexcept {
    int done = 0;
    for (int i = 1; i < job.members; ++i) {
      if (members[i].begun.exchange(true, std::memory_order_relaxed)) continue;
      do_part(i);
      working.fetch_sub(1, std::memory_order_relaxed);
      ++done;
    }
    return done;
  }
  double longest_wait() const noexcept {
    double most = waits.all();
    for (int i = 1; i < job.members; ++i) most = std::max(most, members[i].waited);
    return most;
  }
  // Workers block every signal: those belong to the threads of the caller.
  void grow(int count) {
    if (workers >= count) return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; workers < count; ++workers) {
      Worker& next = members[workers + 1];
      next.seen = next.call.number();
      // If the system grants no more threads, those that exist will do.
      if (pthread_create(&next.thread, nullptr, begin, &next) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  // For whoever has the team.
  void dismiss() noexcept {
    dismissed.store(true, std::memory_order_relaxed);
    for (int i = 1; i <= workers; ++i) members[i].call.tell();
    for (int i = 1; i <= workers; ++i) pthread_join(members[i].thread, nullptr);
    workers = 0;
    dismissed.store(false, std::memory_order_relaxed);
  }
  static void* begin(void* worker) noexcept;
};

// Never destroyed: static objects of others may compute when they are.
constinit Team team;
static_assert(std::is_trivially_destructible_v<Team>);

void* Team::begin(void* worker) noexcept {
  team.work(static_cast<int>(static_cast<Worker*>(worker) - team.members));
  return nullptr;
}

constinit std::atomic<double> assumed_meeting{0};
constinit std::atomic<bool> minding_company{true};
constinit std::atomic<int> finished_alone{0};

// The threads of a parent do not exist in a forked child, nor does whoever had the team there: a
// child starts with a new one. Registered before main, so that no fork comes in between.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  new (&team) Team;
  new (&seats) Seats;
  leading = false;
});

// When the process ends, or a plug-in that this code is part of is unloaded: no thread may be left
// in the code. Later calls run on their own thread alone. A signal's handler may exit() inside a
// job: then the team cannot be waited for.
struct AtUnload {
  ~AtUnload() {
    if (leading) return;
    team.ending.fetch_add(1);
    end_workers();
  }
};
const AtUnload at_unload;

}  // namespace

void relax(unsigned round) noexcept {
  if (long_wait(round)) {
    sched_yield();
  } else {
    pause();
  }
}

bool Barrier::wait(int members) noexcept {
  if (members == 1) return false;
  at_piece(my_index);
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == members - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    const bool late = late_.load(std::memory_order_relaxed);
    if (late) late_.store(false, std::memory_order_relaxed);
    phase_.store((phase | 1) + (late ? 2 : 1), std::memory_order_release);
    return late;
  }
  bool asked = false;
  std::uint32_t now = phase;
  for (unsigned round = 0; (now = phase_.load(std::memory_order_acquire)) == phase; ++round) {
    if (long_wait(round)) {
      seats.spread(my_index);
      if (waits.too_long()) late_.store(asked = true, std::memory_order_relaxed);
    }
    relax(round);
  }
  waits.over();
  const bool late = now % 2 == 1;
  // Too late for this meeting: the next one is another matter.
  if (asked && !late) late_.store(false, std::memory_order_relaxed);
  return late;
}

void went_on_alone() noexcept {
  team.alone = true;
  finished_alone.fetch_add(1, std::memory_order_relaxed);
}

void end_workers() noexcept {
  team.ending.fetch_add(1);
  for (unsigned round = 0; team.taken.test_and_set(std::memory_order_acquire); ++round) {
    relax(round);
  }
  team.dismiss();
  team.taken.clear(std::memory_order_release);
  team.ending.fetch_sub(1);
}

int most_threads(int max_threads) {
  return max_threads > 0 ? std::min(num_threads(), max_threads) : num_threads();
}

ThreadLease::ThreadLease(int wanted, double alone) : alone_(alone) {
  if (wanted <= 1 || team.ending.load(std::memory_order_relaxed) != 0) return;
  if (team.taken.test_and_set(std::memory_order_acquire)) return;
  leads_ = leading = true;
  threads_ = std::min(wanted, Team::kMostWorkers + 1);
  heed_company();
  if (threads_ == 1) return;
  team.grow(threads_ - 1);
  threads_ = std::min(threads_, team.workers + 1);
}

// Fewer threads while more would wait for each other.
void ThreadLease::heed_company() noexcept {
  if (!minding_company.load(std::memory_order_relaxed)) return;
  keep(team.contention.allow(threads_, seconds_now(), alone_));
}

ThreadLease::~ThreadLease() { leave(); }

void ThreadLease::leave() noexcept {
  if (!std::exchange(leads_, false)) return;
  leading = false;
  team.taken.clear(std::memory_order_release);
}

void ThreadLease::keep(int count) noexcept {
  threads_ = std::clamp(count, 1, threads_);
  // Who works alone leaves the team to others.
  if (threads_ == 1) leave();
}

bool heed_contention(bool minding) noexcept { return minding_company.exchange(minding); }

void forget_contention() noexcept {
  const ThreadLease lease(2);
  team.contention = {};
}

int jobs_finished_alone() noexcept { return finished_alone.load(std::memory_order_relaxed); }

void hook_pieces(PieceHook hook) noexcept { piece_hook.store(hook); }

double assume_barrier_latency(double seconds) noexcept { return assumed_meeting.exchange(seconds); }

double ThreadLease::barrier_latency() noexcept {
  if (threads_ == 1) return 0;
  if (const double assumed = assumed_meeting.load(std::memory_order_relaxed)) return assumed;
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (now >= team.believed_until) {
    const double measured = measure_meeting();
    const auto end = Clock::now();
    // Nothing is measured where somebody was late at once.
    const bool met = measured < std::numeric_limits<double>::infinity();
    if (met) team.meeting = measured;
    const auto lasts =
        std::clamp<Clock::duration>(kMeetingPays * (end - now), kMeetingLasts, kMeetingLastsAtMost);
    if (met) team.believed_until = end + lasts;
    heed_company();
    if (threads_ == 1) return 0;
  }
  return team.meeting;
}

// The least of some rounds: the first ones may wake somebody, and any may be interrupted.
double ThreadLease::measure_meeting() noexcept {
  constexpr int kRounds = 4, kMeetings = 4;
  struct alignas(64) Line {
    std::atomic<int> number{0};
  };
  Line lines[2];
  Barrier barrier;
  double least = std::numeric_limits<double>::infinity();
  const int all = std::exchange(threads_, 2);
  const double alone = std::exchange(alone_, 0.0);
  run([&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      int read = 0;
      for (int i = 0; i < kMeetings; ++i) {
        lines[me].number.store(read + 1, std::memory_order_relaxed);
        // Who was late once would be late every time.
        if (barrier.wait(2)) return;
        read = lines[1 - me].number.load(std::memory_order_relaxed);
      }
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (me == 0) least = std::min(least, taken.count() / kMeetings);
    }
  });
  threads_ = all;
  alone_ = alone;
  return least;
}

void ThreadLease::run_job(Function function, void* context) noexcept {
  const FlushSubnormals flush;
  if (threads_ == 1) return function(context, 0);
  const bool minding = minding_company.load(std::memory_order_relaxed);
  const double least = minding ? least_wait(alone_) : std::numeric_limits<double>::infinity();
  team.job = {function, context, threads_, seconds_now(), least};
  team.alone = false;
  waits.begin(team.job);
  seats.clear(threads_);
  team.call_members();
  team.do_part(0);
  const int without = team.do_what_is_left();
  for (unsigned round = 0; team.working.load(std::memory_order_acquire) != 0; ++round) {
    if (long_wait(round)) {
      seats.spread(0);
      waits.too_long();
    }
    relax(round);
  }
  waits.over();
  if (!minding) return;
  const double now = seconds_now(), took = now - team.job.begun;
  double waited = team.longest_wait();
  // Nothing is gained by a worker whose part the caller did.
  if (without > 0) waited = std::max(waited, took * (threads_ - 1) / threads_);
  // What the caller did alone after others had been late does not make up for it.
  team.contention.tell(threads_, {team.alone ? waited : took, waited}, now);
}

int threads_for(double work, double alone, int most) noexcept {
  if (work < alone) return 1;
  return static_cast<int>(std::min(static_cast<double>(most), 2 * work / alone));
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  // The first members have more where it is uneven: the caller is one who need not be woken.
  const std::int64_t grains = (size + grain - 1) / grain;
  const auto bound = [&](std::int64_t i) {
    return std::min(size, (grains * i + count - 1) / count * grain);
  };
  first = bound(index);
  last = bound(index + 1);
}

}  // namespace openrnn::cpu
