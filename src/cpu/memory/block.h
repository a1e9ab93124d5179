// The memory of a call, as one block that is carved into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpu/memory/pool.h"

namespace openrnn::cpu {

/// An owned piece of uninitialized memory from the pool of the process, 64-byte aligned. Throws:
/// std::bad_alloc.
class Block {
 public:
  Block() = default;
  explicit Block(std::size_t bytes) {
    if (bytes > 0) block_ = MemoryPool::process().take(bytes);
  }
  Block(Block&& other) noexcept : block_(std::exchange(other.block_, {})) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Block() {
    if (block_.data) MemoryPool::process().give_back(block_);
  }

  void* data() const noexcept { return block_.data; }
  std::size_t size() const noexcept { return block_.bytes; }

 private:
  PoolBlock block_;
};

/// Carves aligned pieces from one block; a first pass with null memory measures the size.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    std::byte* const at = memory_ ? memory_ + used_ : nullptr;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

}  // namespace openrnn::cpu
