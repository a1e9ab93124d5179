#include "cpu/memory/pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/out_of_memory.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Four sizes an octave: at most a quarter is wasted, and nearby sizes share blocks.
std::size_t class_size(std::size_t bytes) {
  const std::size_t least = std::max<std::size_t>(bytes, 256);
  const std::size_t step = std::bit_floor(least) / 4;
  return (least + step - 1) / step * step;  // NOLINT(*DivideZero): step is at least 64
}

// The number of a size from class_size.
std::size_t class_of(std::size_t size) {
  // No size is below that of the first class: only the analyzer has to be told.
  const auto octave =
      static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(size, 256))) - 1;
  return 4 * octave + ((size >> (octave - 2)) & 3);
}
std::size_t size_of_class(std::size_t number) { return (4 + number % 4) << (number / 4 - 2); }

std::align_val_t alignment(std::size_t size) {
  return std::align_val_t{size >= kHugePage ? kHugePage : AlignedBuffer::kAlignment};
}

void* fresh(std::size_t size) {
  void* const data = ::operator new(size, alignment(size), std::nothrow);
  if (data && size >= kHugePage) madvise(data, size, MADV_HUGEPAGE);
  return data;
}

void free_block(void* data, std::size_t size) noexcept { ::operator delete(data, alignment(size)); }

constinit MemoryPool process_pool;
static_assert(std::is_trivially_destructible_v<MemoryPool>);

// Unloading a plug-in leaks no idle blocks.
struct AtUnload {
  ~AtUnload() { process_pool.clear(); }
};
const AtUnload at_unload;

[[maybe_unused]] const int at_fork = pthread_atfork(
    [] { process_pool.hold(); }, [] { process_pool.release(); }, [] { process_pool.release(); });

}  // namespace

PoolBlock MemoryPool::take(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw OutOfMemory(bytes);
  const std::size_t size = class_size(bytes);
  {
    const std::scoped_lock lock(mutex_);
    used_bytes_ += size;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
    if (Idle*& first = idle_[class_of(size)]) {
      Idle* const block = first;
      first = block->next;
      idle_bytes_ -= size;
      return {block, size};
    }
  }
  void* const data = fresh(size);
  if (!data) {
    const std::scoped_lock lock(mutex_);
    used_bytes_ -= size;
    throw OutOfMemory(bytes);
  }
  return {data, size};
}

void MemoryPool::give_back(PoolBlock block) noexcept {
  const std::scoped_lock lock(mutex_);
  // Others go, not this one: the call that returns it will most likely come again.
  while (idle_bytes_ + used_bytes_ > peak_bytes_ + peak_bytes_ / 4 && idle_bytes_ > 0) {
    free_largest();
  }
  Idle*& first = idle_[class_of(block.bytes)];
  first = new (block.data) Idle{first};
  used_bytes_ -= block.bytes;
  idle_bytes_ += block.bytes;
}

std::shared_ptr<void> MemoryPool::allocate(std::size_t bytes) {
  const PoolBlock block = take(bytes);
  return {block.data, [this, size = block.bytes](void* data) { give_back({data, size}); }};
}

void MemoryPool::free_largest() noexcept {
  std::size_t number = kClasses - 1;
  while (!idle_[number]) --number;
  Idle* const block = idle_[number];
  idle_[number] = block->next;
  const std::size_t size = size_of_class(number);
  idle_bytes_ -= size;
  free_block(block, size);
}

std::size_t MemoryPool::idle_bytes() const {
  const std::scoped_lock lock(mutex_);
  return idle_bytes_;
}

std::size_t MemoryPool::used_bytes() const {
  const std::scoped_lock lock(mutex_);
  return used_bytes_;
}

void MemoryPool::clear() noexcept {
  const std::scoped_lock lock(mutex_);
  while (idle_bytes_ > 0) free_largest();
}

MemoryPool& MemoryPool::process() noexcept { return process_pool; }

}  // namespace openrnn::cpu
