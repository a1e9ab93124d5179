#include "cpu/threading/barrier.h"

#include "cpu/threading/affinity.h"
#include "cpu/threading/spin.h"
#include "cpu/threading/waits.h"

namespace openrnn::cpu {

// For the last member to arrive: releases the others.
bool Barrier::complete(std::uint32_t phase) noexcept {
  arrived_.store(0, std::memory_order_relaxed);
  const bool late = late_.load(std::memory_order_relaxed);
  if (late) late_.store(false, std::memory_order_relaxed);
  phase_.store((phase | 1) + (late ? 2 : 1), std::memory_order_release);
  return late;
}

bool Barrier::wait(int members) noexcept {
  if (members == 1) return false;
  at_piece();
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == members - 1) return complete(phase);
  JobMember* waiting = nullptr;  // set by the first long wait
  bool asked = false;
  std::uint32_t now = phase_.load(std::memory_order_acquire);
  for (unsigned round = 0; now == phase; ++round) {
    if (is_long_wait(round)) {
      waiting = &this_member();
      placement.spread(waiting->index);
      if (waiting->waits.too_long()) late_.store(asked = true, std::memory_order_relaxed);
    }
    relax(round);
    now = phase_.load(std::memory_order_acquire);
  }
  if (waiting) waiting->waits.over();
  const bool late = now % 2 == 1;
  // Asked too late for this barrier; the next one decides anew.
  if (asked && !late) late_.store(false, std::memory_order_relaxed);
  return late;
}

}  // namespace openrnn::cpu
