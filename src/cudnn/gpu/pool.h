// The caching memory pool of one GPU.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace openrnn::cudnn {

class Context;

/// Keeps released blocks for reuse, so that a repeated step does not call the driver. A block may
/// be given to the next caller while the GPU still works on it, since all work of a GPU is done in
/// the order of the calls. A request takes the smallest idle block of at most twice its size, so
/// that batches of many lengths share blocks; all blocks together are at most twice the peak of
/// what was in use. Releasing does not call the driver, so the last owner may be destroyed in any
/// thread, at exit, or after a fork. Thread-safe.
class Pool {
 public:
  explicit Pool(const Context& context) : context_(context) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The rounded size of a block for that many bytes: nearby sizes share blocks.
  static std::size_t size_class(std::size_t bytes);
  /// 256-byte aligned, not cleared, never null; the pool must outlive it. Idle blocks are returned
  /// to the driver when it has no other memory. Throws: EngineError when memory runs out, and after
  /// a fork.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Bytes in use by callers, and all bytes from the driver, idle ones included.
  std::size_t used_bytes() const;
  std::size_t held_bytes() const;
  /// Returns every idle block to the driver. Waits for the GPU.
  void release_idle();

 private:
  struct GiveBack;
  struct Block {
    void* memory = nullptr;
    std::size_t size = 0;
  };
  Block idle_block(std::size_t size);
  Block new_block(std::size_t size, std::size_t wanted);
  void give_back(void* block, std::size_t size) noexcept;
  void free_largest();
  [[noreturn]] void refuse(std::size_t bytes) const;

  const Context& context_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> idle_;  // by size, no list empty
  std::size_t idle_bytes_ = 0, used_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace openrnn::cudnn
