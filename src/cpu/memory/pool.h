// Memory that is kept for reuse: fresh pages cost more than what is computed in them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace openrnn::cpu {

/// A piece of memory from a pool. `bytes` are those of its size class.
struct PoolBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Aligned blocks, kept when released so that a repeated call touches no new page: in use and idle
/// together at most 1.25 times the peak of what was in use. Blocks of 2 MB and more begin with a
/// huge page and ask for more. The list of idle blocks lies in them. Thread-safe.
class MemoryPool {
 public:
  constexpr MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// 64-byte aligned, not cleared. Never null. Throws: std::bad_alloc.
  PoolBlock take(std::size_t bytes);
  /// For a block from take().
  void give_back(PoolBlock block) noexcept;
  /// The same as an owner; the pool must outlive it. Throws: std::bad_alloc.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Idle bytes.
  std::size_t idle_bytes() const;
  /// Bytes of blocks that are in use.
  std::size_t used_bytes() const;
  /// Frees idle blocks.
  void clear() noexcept;

  /// The pool of the process; never destroyed, so that no static object outlives it.
  static MemoryPool& process() noexcept;
  /// Around a fork: the pool must be consistent in the child, whatever another thread was doing.
  void hold() { mutex_.lock(); }
  void release() { mutex_.unlock(); }

 private:
  struct Idle {
    Idle* next;
  };
  // Four size classes an octave.
  static constexpr std::size_t kClasses = std::size_t{4} * 64;

  void free_largest() noexcept;

  mutable std::mutex mutex_;
  Idle* idle_[kClasses] = {};
  std::size_t idle_bytes_ = 0, used_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace openrnn::cpu
