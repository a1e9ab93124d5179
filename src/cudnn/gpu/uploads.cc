#include "cudnn/gpu/uploads.h"

#include <algorithm>
#include <exception>

#include "cudnn/gpu/staging.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {
namespace {

// A step uploads a few arrays: these marks cover several steps.
constexpr std::size_t kMarks = 32, kMostIdle = 32;
// Blocks of one size that the GPU still uses: one of the current step, one of the next.
constexpr std::size_t kMostAhead = 3;

}  // namespace

/// Deleter of the memory that callers have.
struct Uploads::GiveBack {
  Uploads* uploads;
  Block block;
  void operator()(void*) noexcept { uploads->give_back(std::move(block)); }
};

// The number is taken before the event is recorded: a thread that releases a block and reads the
// next number has enqueued all its work before that.
const Uploads::Mark& Uploads::mark() {
  Mark next;
  if (marks_.size() == kMarks) {
    next = std::move(marks_.front());
    marks_.pop_front();
  }
  next.number = next_mark_++;
  next.event.record(context_.stream());
  marks_.push_back(std::move(next));
  return marks_.back();
}

const Uploads::Mark& Uploads::mark_of(const Block& block) const {
  return *std::find_if(marks_.begin(), marks_.end(),
                       [&](const Mark& each) { return each.number >= block.free_at; });
}

// The oldest one, if the GPU is done with it: else the copy would wait for it. But a host that runs
// far ahead does not get more memory.
Uploads::Block Uploads::idle_block(std::size_t size) {
  auto found = idle_.end();
  std::size_t fitting = 0;
  for (auto block = idle_.begin(); block != idle_.end(); ++block) {
    if (block->size < size || block->size > 2 * size || block->free_at >= next_mark_) continue;
    if (fitting++ == 0) found = block;
  }
  if (fitting == 0 || (fitting < kMostAhead && !mark_of(*found).event.is_done())) return {};
  Block block = std::move(*found);
  idle_.erase(found);
  return block;
}

/// A block that the copy stream may write from now on.
Uploads::Block Uploads::block_to_fill(std::size_t bytes) {
  const std::size_t size = Pool::size_class(bytes);
  std::unique_lock lock(mutex_);
  if (!stream_) {
    // It is not ordered with the default stream, which other libraries use.
    check(libraries().driver.stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  const auto fill_after = [&](const Mark& ready) {
    check(libraries().driver.stream_wait(stream_, ready.event.handle(), 0), "cuStreamWaitEvent");
  };
  Block block = idle_block(size);
  if (block.memory) {
    fill_after(mark_of(block));
    mark();  // for blocks released since the last one
  } else {
    // The pool's block may have been in use until just now: allocate first, then mark.
    lock.unlock();
    block = {context_.allocate(bytes), size, 0};
    lock.lock();
    fill_after(mark());
  }
  return block;
}

std::shared_ptr<void> Uploads::bring(const void* host, std::size_t bytes) {
  Block block = block_to_fill(bytes);
  void* const to = block.memory.get();
  std::shared_ptr<void> memory(to, GiveBack{this, std::move(block)});
  context_.staging().upload(stream_, to, host, bytes);
  Event there;
  there.record(stream_);
  check(libraries().driver.stream_wait(context_.stream(), there.handle(), 0), "cuStreamWaitEvent");
  return memory;
}

void Uploads::give_back(Block block) noexcept {
  // The child of a fork cannot use the memory, and must not lock the mutex.
  if (forked()) return;
  Block oldest;  // returns to the pool after the lock is released
  const std::lock_guard lock(mutex_);
  try {
    block.free_at = next_mark_;
    idle_.push_back(std::move(block));
  } catch (const std::exception&) {
    return;
  }
  if (idle_.size() <= kMostIdle) return;
  oldest = std::move(idle_.front());
  idle_.pop_front();
}

bool Uploads::release_idle() {
  std::deque<Block> all;
  const std::lock_guard lock(mutex_);
  std::swap(all, idle_);
  return !all.empty();
}

CUstream Uploads::stream() const {
  const std::lock_guard lock(mutex_);
  return stream_;
}

}  // namespace openrnn::cudnn
