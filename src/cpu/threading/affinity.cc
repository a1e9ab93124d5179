#include "cpu/threading/affinity.h"

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace openrnn::cpu {
namespace {

// Not asked yet, no, yes.
constinit std::atomic<int> spreads{-1};

#if defined(__linux__)
int this_processor() noexcept { return sched_getcpu(); }
int this_thread() noexcept { return static_cast<int>(gettid()); }
#else
int this_processor() noexcept { return -1; }
int this_thread() noexcept { return 0; }
#endif

}  // namespace

constinit Placement placement;

bool spreads_threads() noexcept {
  int known = spreads.load(std::memory_order_relaxed);
  if (known < 0) {
    const char* const text = std::getenv("OPENRNN_SPREAD_THREADS");
    const int first = text && std::string_view(text) == "0" ? 0 : 1;
    // A set_spreads_threads in between wins.
    if (spreads.compare_exchange_strong(known, first)) known = first;
  }
  return known == 1;
}

void set_spreads_threads(bool spread) noexcept { spreads.store(spread ? 1 : 0); }

void Placement::seen(int index) noexcept {
  if (index < kMembers) processors_[index].store(this_processor(), std::memory_order_relaxed);
}
void Placement::enter(int index) noexcept {
  if (index < kMembers) threads_[index].store(this_thread(), std::memory_order_relaxed);
}
void Placement::leave(int index) noexcept {
  if (index < kMembers) threads_[index].store(0, std::memory_order_relaxed);
}

void Placement::begin(int members) noexcept {
  for (int i = 0; i < kMembers; ++i) {
    processors_[i].store(i < members ? kNotBegun : kAbsent, std::memory_order_relaxed);
  }
  if (members > 0) seen(0);
}

void Placement::spread(int index) noexcept {
  if (index >= kMembers || processor_of(0) == kAbsent || !spreads_threads()) return;
  seen(index);
  const int mine = processor_of(index);
  for (int i = 1; i < kMembers; ++i) {
    const bool here = processor_of(i) == mine || (index == 0 && processor_of(i) == kNotBegun);
    if (i != index && here) move(i);
  }
  if (index > 0 && processor_of(0) == mine) move(index);
}

void Placement::move(int i) noexcept {
  // Of two at once one could take the other's mask of the moment for the one to restore.
  if (moving_.test_and_set(std::memory_order_acquire)) return;
  move_thread(i, threads_[i].load(std::memory_order_relaxed));
  moving_.clear(std::memory_order_release);
}

#if defined(__linux__)
void Placement::move_thread(int i, int thread) noexcept {
  cpu_set_t allowed, free, now;
  if (thread == 0 || sched_getaffinity(thread, sizeof(allowed), &allowed) != 0) return;
  free = allowed;
  for (int other = 0; other < kMembers; ++other) {
    const int taken = processor_of(other);
    if (other != i && taken >= 0 && taken < CPU_SETSIZE) {
      CPU_CLR(static_cast<std::size_t>(taken), &free);
    }
  }
  if (CPU_COUNT(&free) == 0 || sched_setaffinity(thread, sizeof(free), &free) != 0) return;
  moves_.fetch_add(1, std::memory_order_relaxed);
  // A mask that was set by others meanwhile stays.
  const bool ours = sched_getaffinity(thread, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &free);
  if (ours) sched_setaffinity(thread, sizeof(allowed), &allowed);
}
#else
void Placement::move_thread(int, int) noexcept {}
#endif

}  // namespace openrnn::cpu
