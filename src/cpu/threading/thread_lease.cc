#include "cpu/threading/thread_lease.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "cpu/threading/affinity.h"
#include "cpu/threading/spin.h"
#include "cpu/threading/subnormals.h"
#include "cpu/threading/thread_pool.h"

namespace openrnn::cpu {
namespace {

constinit thread_local bool held_here = false;
constinit thread_local HostThreads host_here = nullptr;
constinit std::atomic<double> assumed_latency{0};
constinit std::atomic<bool> heeding{true};
constinit std::atomic<int> finished_alone{0};

}  // namespace

bool ThreadLease::is_held_here() noexcept { return held_here; }
void ThreadLease::forget() noexcept {
  held_here = false;
  host_here = nullptr;
}

HostThreads exchange_host_threads(HostThreads host) noexcept {
  return std::exchange(host_here, host);
}

ThreadLease::ThreadLease(int wanted, double alone) : alone_(alone) {
  if (wanted <= 1 || pool.ending.load(std::memory_order_relaxed) != 0) return;
  if (pool.taken.test_and_set(std::memory_order_acquire)) return;
  leads_ = held_here = true;
  threads_ = std::min(wanted, ThreadPool::kMostWorkers + 1);
  give_way();
  host_ = host_here;
  if (threads_ == 1 || host_) return;
  pool.grow(threads_ - 1);
  threads_ = std::min(threads_, pool.workers + 1);
}

// Fewer threads while more would wait for each other.
void ThreadLease::give_way() noexcept {
  if (!heeding.load(std::memory_order_relaxed)) return;
  keep(pool.contention.allow(threads_, seconds_now(), alone_));
}

ThreadLease::~ThreadLease() { leave(); }

void ThreadLease::leave() noexcept {
  if (!std::exchange(leads_, false)) return;
  held_here = false;
  pool.taken.clear(std::memory_order_release);
}

void ThreadLease::keep(int count) noexcept {
  threads_ = std::clamp(count, 1, threads_);
  // One thread leaves the pool to others.
  if (threads_ == 1) leave();
}

double ThreadLease::barrier_latency() noexcept {
  if (threads_ == 1) return 0;
  if (const double assumed = assumed_latency.load(std::memory_order_relaxed)) return assumed;
  const auto now = BarrierLatency::Clock::now();
  if (!pool.latency.is_known(now)) {
    pool.latency.tell(measure_latency(), now, BarrierLatency::Clock::now());
    give_way();
    if (threads_ == 1) return 0;
  }
  return pool.latency.seconds();
}

// As a short job of two threads.
double ThreadLease::measure_latency() noexcept {
  LatencyProbe probe;
  const int all = std::exchange(threads_, 2);
  const double alone = std::exchange(alone_, 0.0);
  run([&probe](int member) { probe.run(member); });
  threads_ = all;
  alone_ = alone;
  return probe.seconds();
}

void ThreadLease::run_job(Function function, void* context) noexcept {
  const FlushSubnormals flush;
  if (threads_ == 1) return function(context, 0);
  const bool heeds = heeding.load(std::memory_order_relaxed);
  const double least = heeds ? least_wait(alone_) : std::numeric_limits<double>::infinity();
  run_members(function, context, least);
}

void ThreadLease::run_members(Function function, void* context, double least_wait) noexcept {
  Waits& waits = this_member().waits;
  pool.job = {function, context, threads_, seconds_now(), least_wait};
  pool.alone = false;
  waits.begin(pool.job);
  placement.begin(host_ ? 0 : threads_);
  if (host_) {
    run_on_host();
  } else {
    pool.wake_members();
    do_own_parts();
  }
  if (!heeding.load(std::memory_order_relaxed)) return;
  const double now = seconds_now(), took = now - pool.job.begun;
  double waited = pool.longest_wait();
  // A worker whose part the caller did has gained nothing.
  if (taken_over_ > 0) waited = std::max(waited, took * (threads_ - 1) / threads_);
  // What the caller did alone after others had been late does not make up for it.
  pool.contention.tell(threads_, {pool.alone ? waited : took, waited}, now);
}

void ThreadLease::run_on_host() noexcept {
  pool.offer_parts();
  const auto part = [](void* lease, int member) {
    if (member == 0) return static_cast<ThreadLease*>(lease)->do_own_parts();
    pool.do_part_of_host(member);
  };
  host_(threads_, part, this);
}

// The caller's, and those that no other thread has begun.
void ThreadLease::do_own_parts() noexcept {
  Waits& waits = this_member().waits;
  pool.do_part(0);
  taken_over_ = pool.do_what_is_left();
  for (unsigned round = 0; pool.working.load(std::memory_order_acquire) != 0; ++round) {
    if (is_long_wait(round)) {
      placement.spread(0);
      waits.too_long();
    }
    relax(round);
  }
  waits.over();
}

void went_on_alone() noexcept {
  pool.alone = true;
  finished_alone.fetch_add(1, std::memory_order_relaxed);
}

int jobs_finished_alone() noexcept { return finished_alone.load(std::memory_order_relaxed); }

bool heed_contention(bool heed) noexcept { return heeding.exchange(heed); }

void forget_contention() noexcept {
  const ThreadLease lease(2);
  pool.contention = {};
}

double assume_barrier_latency(double seconds) noexcept { return assumed_latency.exchange(seconds); }

}  // namespace openrnn::cpu
