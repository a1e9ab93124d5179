#include "cpu/run/team.h"

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

#include "cpu/gemm.h"
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

bool long_wait(unsigned round) { return round % kSpinsBeforeYield == kSpinsBeforeYield - 1; }

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Where the members of the running job were last seen. A system may leave two of them on one
// processor, beside an idle one, for many milliseconds, and giving the processor away does not help
// where it hands out time in slices: then each waits for the other at every barrier. So a worker
// that shares with another member is asked to run elsewhere, after which it may run anywhere again.
// The thread of the caller is never moved. Only the first members are looked after: it is small
// teams that suffer.
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

constinit Seats seats;
// Which member of a job this thread is.
constinit thread_local int my_index = 0;
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

/// A place of the team, and the thread in it.
struct Worker {
  Call call;
  pthread_t thread{};
  std::uint32_t seen = 0;  // the call's number when the thread was started
};

struct alignas(64) Team {
  static constexpr int kMostWorkers = 1023;

  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::atomic<int> ending{0};          // who ends the team, or waits to: nobody takes it meanwhile
  std::atomic<bool> dismissed{false};  // a worker that is called goes
  std::atomic<int> working{0};
  void (*function)(void*, int) = nullptr;
  void* context = nullptr;
  int workers = 0;
  // For whoever has the team: what a meeting took, and when it is to be measured again.
  double meeting = 0;
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
      seats.sit(index);
      function(context, index);
      working.fetch_sub(1, std::memory_order_release);
    }
  }
  // Only the members of a job are woken.
  void call_members(int count) noexcept {
    working.store(count - 1, std::memory_order_relaxed);
    for (int i = 1; i < count; ++i) members[i].call.tell();
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

void Barrier::wait(int members) noexcept {
  if (members == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == members - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    return;
  }
  for (unsigned round = 0; phase_.load(std::memory_order_acquire) == phase; ++round) {
    if (long_wait(round)) seats.spread(my_index);
    relax(round);
  }
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

TeamLease::TeamLease(int wanted) {
  if (wanted <= 1 || team.ending.load(std::memory_order_relaxed) != 0) return;
  if (team.taken.test_and_set(std::memory_order_acquire)) return;
  leads_ = leading = true;
  team.grow(std::min(wanted - 1, Team::kMostWorkers));
  threads_ = std::min(wanted, team.workers + 1);
}

TeamLease::~TeamLease() { leave(); }

void TeamLease::leave() noexcept {
  if (!std::exchange(leads_, false)) return;
  leading = false;
  team.taken.clear(std::memory_order_release);
}

void TeamLease::keep(int count) noexcept {
  threads_ = std::clamp(count, 1, threads_);
  // Who works alone leaves the team to others.
  if (threads_ == 1) leave();
}

double assume_meeting(double seconds) noexcept { return assumed_meeting.exchange(seconds); }

double TeamLease::meeting_seconds() noexcept {
  if (threads_ == 1) return 0;
  if (const double assumed = assumed_meeting.load(std::memory_order_relaxed)) return assumed;
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (now >= team.believed_until) {
    team.meeting = measure_meeting();
    const auto end = Clock::now();
    team.believed_until = end + std::clamp<Clock::duration>(kMeetingPays * (end - now),
                                                            kMeetingLasts, kMeetingLastsAtMost);
  }
  return team.meeting;
}

// The least of some rounds: the first ones may wake somebody, and any may be interrupted.
double TeamLease::measure_meeting() noexcept {
  constexpr int kRounds = 4, kMeetings = 4;
  struct alignas(64) Line {
    std::atomic<int> number{0};
  };
  Line lines[2];
  Barrier barrier;
  double least = std::numeric_limits<double>::infinity();
  const int all = std::exchange(threads_, 2);
  run([&](int me) {
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      int read = 0;
      for (int i = 0; i < kMeetings; ++i) {
        lines[me].number.store(read + 1, std::memory_order_relaxed);
        barrier.wait(2);
        read = lines[1 - me].number.load(std::memory_order_relaxed);
      }
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (me == 0) least = std::min(least, taken.count() / kMeetings);
    }
  });
  threads_ = all;
  return least;
}

void TeamLease::run_job(Function function, void* context) noexcept {
  const FlushSubnormals flush;
  if (threads_ == 1) return function(context, 0);
  team.function = function;
  team.context = context;
  seats.clear(threads_);
  team.call_members(threads_);
  function(context, 0);
  for (unsigned round = 0; team.working.load(std::memory_order_acquire) != 0; ++round) {
    if (long_wait(round)) seats.spread(0);
    relax(round);
  }
}

int threads_for(double work, double alone, int most) noexcept {
  if (work < alone) return 1;
  return static_cast<int>(std::min(static_cast<double>(most), 2 * work / alone));
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  const std::int64_t grains = (size + grain - 1) / grain;
  first = std::min(size, grains * index / count * grain);
  last = std::min(size, grains * (index + 1) / count * grain);
}

}  // namespace openrnn::cpu
