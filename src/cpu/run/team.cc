#include "cpu/run/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

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

struct Team {
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
std::atomic<Team*> current_team{nullptr};

Team& team() {
  Team* found = current_team.load(std::memory_order_acquire);
  if (found) return *found;
  // The threads of a parent do not exist in a forked child, which gets a team of its own.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current_team.store(nullptr); });
  static_cast<void>(registered);
  auto made = std::make_unique<Team>();
  if (current_team.compare_exchange_strong(found, made.get())) return *made.release();
  return *found;
}

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
  Team& shared = team();
  if (shared.taken.test_and_set(std::memory_order_acquire)) return;
  shared.grow(wanted - 1);
  threads_ = std::min(wanted, shared.workers + 1);
  team_ = &shared;
}

TeamLease::~TeamLease() {
  if (team_) static_cast<Team*>(team_)->taken.clear(std::memory_order_release);
}

void TeamLease::run_job(Function function, void* context) noexcept {
  const FlushSubnormals flush;
  if (threads_ == 1) return function(context, 0);
  Team& shared = *static_cast<Team*>(team_);
  shared.function = function;
  shared.context = context;
  shared.members = threads_;
  shared.working.store(shared.workers, std::memory_order_relaxed);
  shared.epoch.fetch_add(1, std::memory_order_release);
  shared.epoch.notify_all();
  function(context, 0);
  for (unsigned round = 0; shared.working.load(std::memory_order_acquire) != 0; ++round) {
    relax(round);
  }
}

Share::Share(std::int64_t size, std::int64_t grain, int index, int count) {
  const std::int64_t grains = (size + grain - 1) / grain;
  first = std::min(size, grains * index / count * grain);
  last = std::min(size, grains * (index + 1) / count * grain);
}

}  // namespace openrnn::cpu
