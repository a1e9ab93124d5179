// Memory that is kept for reuse.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace openrnn::cpu {

/// Aligned blocks, kept when given back so that a repeated step touches no new page. What lies idle
/// is bounded by what was ever in use at once. Thread-safe.
class MemoryPool {
 public:
  MemoryPool() = default;
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// 64-byte aligned, not cleared; the pool must outlive it. Never null. Throws: std::bad_alloc.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Bytes that lie idle.
  std::size_t idle_bytes() const;
  /// The pool of the process; never destroyed, so that no static object outlives it.
  static MemoryPool& process();
  /// Around a fork: a child must find the pool whole, whatever another thread was doing.
  void hold() { mutex_.lock(); }
  void release() { mutex_.unlock(); }

 private:
  struct GiveBack;
  void give_back(void* block, std::size_t bytes) noexcept;
  void free_largest() noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> idle_;
  std::size_t idle_bytes_ = 0, used_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace openrnn::cpu
