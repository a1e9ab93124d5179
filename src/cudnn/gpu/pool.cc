#include "cudnn/gpu/pool.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

#include "base/message.h"
#include "cudnn/gpu/context.h"
#include "openrnn/base.h"

namespace openrnn::cudnn {
namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

// Eight sizes an octave: at most an eighth is wasted.
std::size_t Pool::size_class(std::size_t bytes) {
  const std::size_t least = std::max(bytes, kAlignment);
  const std::size_t step = std::max(std::bit_floor(least) / 8, kAlignment);
  return (least + step - 1) / step * step;
}

struct Pool::GiveBack {
  Pool* pool;
  std::size_t size;
  void operator()(void* block) const noexcept { pool->give_back(block, size); }
};

std::shared_ptr<void> Pool::allocate(std::size_t bytes) {
  // First: it throws in the child of a fork, where the mutex may be locked for ever.
  const Context::Current current(context_);
  // Against overflow; no GPU has so much.
  const std::size_t size = size_class(std::min(bytes, SIZE_MAX / 4));
  Block block;
  {
    const std::lock_guard lock(mutex_);
    block = idle_block(size);
    if (!block.memory) block = new_block(size, bytes);
    used_bytes_ += block.size;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  }
  return {block.memory, GiveBack{this, block.size}};
}

Pool::Block Pool::idle_block(std::size_t size) {
  const auto found = idle_.lower_bound(size);
  if (found == idle_.end() || found->first > 2 * size) return {};
  const Block block{found->second.back(), found->first};
  found->second.pop_back();
  if (found->second.empty()) idle_.erase(found);
  idle_bytes_ -= block.size;
  return block;
}

Pool::Block Pool::new_block(std::size_t size, std::size_t wanted) {
  const std::size_t most = 2 * std::max(peak_bytes_, used_bytes_ + size);
  while (idle_bytes_ > 0 && idle_bytes_ + used_bytes_ + size > most) free_largest();
  CUdeviceptr block = 0;
  CUresult result = libraries().driver.memory_alloc(&block, size);
  while (result == CUDA_ERROR_OUT_OF_MEMORY && idle_bytes_ > 0) {
    free_largest();
    result = libraries().driver.memory_alloc(&block, size);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) refuse(wanted);
  check(result, "cuMemAlloc");
  return {reinterpret_cast<void*>(block), size};  // NOLINT(*no-int-to-ptr): the driver's form
}

void Pool::give_back(void* block, std::size_t size) noexcept {
  // The child of a fork cannot use the memory, and must not lock the mutex.
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  used_bytes_ -= size;
  try {
    idle_[size].push_back(block);
    idle_bytes_ += size;
  } catch (const std::bad_alloc&) {
    // The block is leaked: there is no host memory even for its address.
  }
}

void Pool::free_largest() {
  const auto largest = std::prev(idle_.end());
  void* block = largest->second.back();
  largest->second.pop_back();
  idle_bytes_ -= largest->first;
  if (largest->second.empty()) idle_.erase(largest);
  // The GPU may still work on it.
  check(libraries().driver.stream_synchronize(context_.stream()), "cuStreamSynchronize");
  check(libraries().driver.memory_free(device_address(block)), "cuMemFree");
}

void Pool::refuse(std::size_t bytes) const {
  std::size_t free = 0, total = 0;
  libraries().driver.memory_info(&free, &total);
  throw GpuError(GpuFault::kNoRoom,
                 message("[allocate] gpu:", context_.ordinal(), " has no room for ", bytes,
                         " bytes: ", used_bytes_, " bytes are in use here, and the driver shows ",
                         free, " of ", total,
                         " as free; use a smaller batch or time, or free other memory of the GPU"));
}

std::size_t Pool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t Pool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + idle_bytes_;
}

void Pool::release_idle() {
  const Context::Current current(context_);
  const std::lock_guard lock(mutex_);
  while (idle_bytes_ > 0) free_largest();
}

}  // namespace openrnn::cudnn
