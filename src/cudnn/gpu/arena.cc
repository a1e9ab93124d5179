#include "cudnn/gpu/arena.h"

#include <algorithm>

#include "base/message.h"
#include "cudnn/gpu/check.h"

namespace openrnn::cudnn {
namespace {

struct Slot {
  std::shared_ptr<void> block;  // null: it returned to the pool
  std::size_t size = 0;
  bool idle = true, asked_for = false;
};

// The pool's own rule: small requests do not take large blocks.
bool fits(const Slot& slot, std::size_t bytes) {
  constexpr std::size_t kLeast = 256;
  return slot.block && slot.idle && slot.size >= bytes && slot.size / 2 <= std::max(bytes, kLeast);
}

}  // namespace

struct Arena::State {
  std::mutex mutex;
  std::vector<Slot> slots;
  bool sealed = false, abandoned = false;
};

struct Arena::GiveBack {
  std::shared_ptr<State> state;
  std::size_t slot;
  void operator()(void*) const noexcept {
    if (forked()) return;
    std::shared_ptr<void> unwanted;  // freed after the lock is released
    const std::lock_guard lock(state->mutex);
    state->slots[slot].idle = true;
    if (state->abandoned) unwanted = std::move(state->slots[slot].block);
  }
};

Arena::Arena(Pool& pool) : pool_(pool), state_(std::make_shared<State>()) {}

Arena::~Arena() {
  if (forked()) return;
  std::vector<std::shared_ptr<void>> unwanted;
  const std::lock_guard lock(state_->mutex);
  state_->abandoned = true;
  for (Slot& slot : state_->slots) {
    if (slot.idle) unwanted.push_back(std::move(slot.block));
  }
}

std::shared_ptr<void> Arena::allocate(std::size_t bytes) {
  const std::lock_guard lock(state_->mutex);
  std::vector<Slot>& slots = state_->slots;
  std::size_t best = slots.size();
  for (std::size_t n = 0; n < slots.size(); ++n) {
    if (fits(slots[n], bytes) && (best == slots.size() || slots[n].size < slots[best].size)) {
      best = n;
    }
  }
  if (best == slots.size()) {
    if (state_->sealed) {
      throw GpuError(GpuFault::kNoRoom,
                     message("[record] a call asked for ", bytes,
                             " bytes while it was recorded, expected no more than before"));
    }
    slots.push_back({.block = pool_.allocate(bytes), .size = bytes});
  }
  slots[best].idle = false;
  slots[best].asked_for = true;
  return {slots[best].block.get(), GiveBack{state_, best}};
}

std::vector<std::size_t> Arena::sizes() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::size_t> found;
  for (const Slot& slot : state_->slots) found.push_back(slot.size);
  return found;
}

void Arena::reserve(const std::vector<std::size_t>& sizes) {
  const std::lock_guard lock(state_->mutex);
  for (const std::size_t size : sizes) {
    state_->slots.push_back({.block = pool_.allocate(size), .size = size});
  }
}

void Arena::seal() {
  const std::lock_guard lock(state_->mutex);
  state_->sealed = true;
}

void Arena::trim() {
  const std::lock_guard lock(state_->mutex);
  for (Slot& slot : state_->slots) {
    if (!slot.asked_for) slot.block.reset();
  }
}

}  // namespace openrnn::cudnn
