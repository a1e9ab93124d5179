#include "cpu/threading/thread_pool.h"

#include <signal.h>

#include <algorithm>

#include "cpu/threading/affinity.h"
#include "cpu/threading/subnormals.h"

namespace openrnn::cpu {
namespace {

void* run_worker(void* worker) noexcept {
  pool.work(static_cast<int>(static_cast<Worker*>(worker) - pool.members));
  return nullptr;
}

}  // namespace

// Workers block every signal: those belong to the threads of the caller.
void ThreadPool::grow(int count) {
  if (workers >= count) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  for (; workers < count; ++workers) {
    Worker& next = members[workers + 1];
    next.seen = next.wake_up.count();
    if (pthread_create(&next.thread, nullptr, run_worker, &next) != 0) break;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void ThreadPool::dismiss() noexcept {
  dismissed.store(true, std::memory_order_relaxed);
  for (int i = 1; i <= workers; ++i) members[i].wake_up.raise();
  for (int i = 1; i <= workers; ++i) pthread_join(members[i].thread, nullptr);
  workers = 0;
  dismissed.store(false, std::memory_order_relaxed);
}

void ThreadPool::work(int member) noexcept {
  const FlushSubnormals flush;
  JobMember& self = this_member();
  self.index = member;
  placement.enter(member);
  Worker& worker = members[member];
  for (std::uint32_t seen = worker.seen;;) {
    seen = worker.wake_up.await(seen);
    if (dismissed.load(std::memory_order_relaxed)) return placement.leave(member);
    // A worker woken for a job that is over may find the next one here, and is woken again for it.
    if (worker.begun.exchange(true, std::memory_order_acquire)) continue;
    placement.seen(member);
    self.waits.begin(job);
    do_part(member);
    worker.waited = self.waits.all();
    working.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::do_part(int member) noexcept {
  at_piece_of(member);
  job.function(job.context, member);
}

void ThreadPool::offer_parts() noexcept {
  working.store(job.members - 1, std::memory_order_relaxed);
  for (int i = 1; i < job.members; ++i) {
    members[i].waited = 0;
    members[i].begun.store(false, std::memory_order_release);
  }
}

void ThreadPool::wake_members() noexcept {
  offer_parts();
  for (int i = 1; i < job.members; ++i) members[i].wake_up.raise();
}

void ThreadPool::do_part_of_host(int member) noexcept {
  if (members[member].begun.exchange(true, std::memory_order_acquire)) return;
  const FlushSubnormals flush;
  JobMember& self = this_member();
  self.index = member;
  self.waits.begin(job);
  do_part(member);
  members[member].waited = self.waits.all();
  self.index = 0;
  working.fetch_sub(1, std::memory_order_release);
}

int ThreadPool::do_what_is_left() noexcept {
  int done = 0;
  for (int i = 1; i < job.members; ++i) {
    if (members[i].begun.exchange(true, std::memory_order_relaxed)) continue;
    do_part(i);
    working.fetch_sub(1, std::memory_order_relaxed);
    ++done;
  }
  return done;
}

double ThreadPool::longest_wait() const noexcept {
  double most = this_member().waits.all();
  for (int i = 1; i < job.members; ++i) most = std::max(most, members[i].waited);
  return most;
}

}  // namespace openrnn::cpu
