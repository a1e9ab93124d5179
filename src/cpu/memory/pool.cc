#include "cpu/memory/pool.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "base/out_of_memory.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

// Four sizes an octave: at most a quarter is wasted, and nearby sizes share blocks.
std::size_t size_class(std::size_t bytes) {
  const std::size_t least = std::max<std::size_t>(bytes, 256);
  const std::size_t step = std::bit_floor(least) / 4;
  return (least + step - 1) / step * step;  // NOLINT(*DivideZero): step is at least 64
}

[[maybe_unused]] const int at_fork =
    pthread_atfork([] { MemoryPool::process().hold(); }, [] { MemoryPool::process().release(); },
                   [] { MemoryPool::process().release(); });

}  // namespace

struct MemoryPool::GiveBack {
  MemoryPool* pool;
  std::size_t bytes;
  void operator()(void* block) const noexcept { pool->give_back(block, bytes); }
};

MemoryPool::~MemoryPool() {
  for (auto& [bytes, blocks] : idle_) {
    for (void* block : blocks) std::free(block);
  }
}

std::shared_ptr<void> MemoryPool::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw OutOfMemory(bytes);
  const std::size_t size = size_class(bytes);
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& blocks = idle_[size];
    if (!blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
      idle_bytes_ -= size;
    }
    used_bytes_ += size;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  }
  if (!block) block = std::aligned_alloc(AlignedBuffer::kAlignment, size);
  if (!block) {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= size;
    throw OutOfMemory(bytes);
  }
  return {block, GiveBack{this, size}};
}

void MemoryPool::give_back(void* block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= bytes;
  try {
    idle_[bytes].push_back(block);
    idle_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    std::free(block);
  }
  while (idle_bytes_ + used_bytes_ > peak_bytes_ + peak_bytes_ / 4 && idle_bytes_ > 0) {
    free_largest();
  }
}

void MemoryPool::free_largest() noexcept {
  std::size_t largest = 0;
  for (const auto& [bytes, blocks] : idle_) {
    if (!blocks.empty()) largest = std::max(largest, bytes);
  }
  std::vector<void*>& blocks = idle_[largest];
  std::free(blocks.back());
  blocks.pop_back();
  idle_bytes_ -= largest;
}

std::size_t MemoryPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

MemoryPool& MemoryPool::process() {
  static auto* const pool = new MemoryPool;
  return *pool;
}

}  // namespace openrnn::cpu
