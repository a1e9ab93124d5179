#include "cpu/threading/waits.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cpu/threading/contention.h"
#include "cpu/threading/spin.h"

namespace openrnn::cpu {
namespace {

// Waits are compared with the job's last 10 ms: a few slices of the system's scheduler.
constexpr double kWindowSeconds = 10e-3;

constinit thread_local JobMember member;
constinit std::atomic<PieceHook> piece_hook{nullptr};

}  // namespace

void Waits::begin(const Job& job) noexcept {
  least_ = job.least_wait;
  members_ = job.members;
  window_ = job.begun;
  all_ = in_window_ = since_ = 0;
}

bool Waits::too_long() noexcept {
  const double now = seconds_now();
  if (since_ == 0) {
    since_ = now;
    // A job with a long least wait needs a window that holds several of them.
    if (now - window_ > std::max(kWindowSeconds, 4 * least_)) {
      window_ = now;
      in_window_ = 0;
    }
  }
  const double waited = in_window_ + now - since_;
  return waited >= least_ && gained({now - window_, waited}, members_) < 0;
}

void Waits::over() noexcept {
  if (since_ == 0) return;
  const double waited = seconds_now() - std::exchange(since_, 0.0);
  all_ += waited;
  in_window_ += waited;
}

JobMember& this_member() noexcept { return member; }

void hook_pieces(PieceHook hook) noexcept { piece_hook.store(hook); }

void at_piece() noexcept {
  if (const PieceHook hook = piece_hook.load(std::memory_order_relaxed)) hook(member.index);
}

void at_piece_of(int index) noexcept {
  if (const PieceHook hook = piece_hook.load(std::memory_order_relaxed)) hook(index);
}

}  // namespace openrnn::cpu
