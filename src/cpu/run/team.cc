#include "cpu/run/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <thread>
#include <type_traits>

#include "cpu/gemm.h"

namespace openrnn::cpu {
namespace {

// Rounds of `pause`, each some 10 to 50 ns. When another program takes a processor, two members may
// share one: then whoever waits must give it away within microseconds, or every step of a call
// costs as much. With nobody else to run, giving away returns at once.
constexpr unsigned kSpinsBeforeYield = 128;
// Some tens of microseconds before a worker without work goes to sleep.
constexpr unsigned kSpinsBeforeSleep = 4000;

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
  /// For the caller's thread, before a job.
  void clear() noexcept {
    for (auto& seat : seats_) seat.store(kNotBegun, std::memory_order_relaxed);
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
  static constexpr int kSeats = 16, kNotBegun = -1;
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

struct alignas(64) Team {
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::atomic<std::uint32_t> epoch{0};
  std::atomic<int> working{0};
  void (*function)(void*, int) = nullptr;
  void* context = nullptr;
  int members = 1;
  int workers = 0;

  void work(int index, std::uint32_t seen) noexcept {
    const FlushSubnormals flush;
    my_index = index;
    seats.enter(index);
    while (true) {
      for (unsigned i = 0; i < kSpinsBeforeSleep && epoch.load(std::memory_order_acquire) == seen;
           ++i) {
        relax(i);
      }
      epoch.wait(seen, std::memory_order_acquire);
      seen = epoch.load(std::memory_order_acquire);
      // A worker beyond the members of this job only takes note of it.
      if (index < members) {
        seats.sit(index);
        function(context, index);
      }
      working.fetch_sub(1, std::memory_order_release);
    }
  }
  // Workers block every signal: those belong to the threads of the caller.
  void grow(int count) {
    if (workers >= count) return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    try {
      for (; workers < count; ++workers) {
        std::thread([this, index = workers + 1, seen = epoch.load()] {
          work(index, seen);
        }).detach();
      }
    } catch (...) {
      // The system grants no more threads: those that exist will do.
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
};

// Never destroyed: its threads wait in it until the process ends.
constinit Team team;
static_assert(std::is_trivially_destructible_v<Team>);

// The threads of a parent do not exist in a forked child, nor does whoever had the team there: a
// child starts with a new one. Registered before main, so that no fork comes in between.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  new (&team) Team;
  new (&seats) Seats;
});

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

TeamLease::TeamLease(int wanted) {
  if (wanted <= 1) return;
  if (team.taken.test_and_set(std::memory_order_acquire)) return;
  leads_ = true;
  team.grow(wanted - 1);
  threads_ = std::min(wanted, team.workers + 1);
}

TeamLease::~TeamLease() {
  if (leads_) team.taken.clear(std::memory_order_release);
}

void TeamLease::run_job(Function function, void* context) noexcept {
  const FlushSubnormals flush;
  if (threads_ == 1) return function(context, 0);
  team.function = function;
  team.context = context;
  team.members = threads_;
  team.working.store(team.workers, std::memory_order_relaxed);
  seats.clear();
  team.epoch.fetch_add(1, std::memory_order_release);
  team.epoch.notify_all();
  function(context, 0);
  for (unsigned round = 0; team.working.load(std::memory_order_acquire) != 0; ++round) {
    if (long_wait(round)) seats.spread(0);
    relax(round);
  }
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  const std::int64_t grains = (size + grain - 1) / grain;
  first = std::min(size, grains * index / count * grain);
  last = std::min(size, grains * (index + 1) / count * grain);
}

}  // namespace openrnn::cpu
