#include "cpu/run/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

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

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
    while (true) {
      for (unsigned i = 0; i < kSpinsBeforeSleep && epoch.load(std::memory_order_acquire) == seen;
           ++i) {
        relax(i);
      }
      epoch.wait(seen, std::memory_order_acquire);
      seen = epoch.load(std::memory_order_acquire);
      // A worker beyond the members of this job only takes note of it.
      if (index < members) function(context, index);
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
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] { new (&team) Team; });

}  // namespace

void relax(unsigned round) noexcept {
  if (round % kSpinsBeforeYield == kSpinsBeforeYield - 1) {
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
  for (unsigned round = 0; phase_.load(std::memory_order_acquire) == phase; ++round) relax(round);
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
  team.epoch.fetch_add(1, std::memory_order_release);
  team.epoch.notify_all();
  function(context, 0);
  for (unsigned round = 0; team.working.load(std::memory_order_acquire) != 0; ++round) {
    relax(round);
  }
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  const std::int64_t grains = (size + grain - 1) / grain;
  first = std::min(size, grains * index / count * grain);
  last = std::min(size, grains * (index + 1) / count * grain);
}

}  // namespace openrnn::cpu
