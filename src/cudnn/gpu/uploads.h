// Copies to a GPU while it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "cudnn/gpu/event.h"

namespace openrnn::cudnn {

/// Copies on a stream of its own, so that the next batch is copied while the GPU works on this one.
/// Only the GPU waits. Work enqueued after bring() waits for the copy. The copy waits for the
/// earlier use of its memory, which is usually long done: such memory is kept separately, and that
/// of the batch before the last is reused, or new memory. Thread-safe.
class Uploads {
 public:
  explicit Uploads(Context& context) : context_(context) {}
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  /// New memory with a copy of the host's bytes, all of which it has read when it returns. For a
  /// thread where the context is current. Throws: EngineError.
  std::shared_ptr<void> bring(const void* host, std::size_t bytes);
  /// Returns the memory kept for the next bytes to the pool. False: there was none.
  bool release_idle();
  /// Null before the first bytes.
  CUstream stream() const;

 private:
  struct GiveBack;
  /// Everything that was given to the GPU before it, by the number of the mark.
  struct Mark {
    std::uint64_t number = 0;
    Event event;
  };
  struct Block {
    std::shared_ptr<void> memory;
    std::size_t size = 0;
    /// The number of the first mark after its last use.
    std::uint64_t free_at = 0;
  };
  const Mark& mark();
  /// The first after its last use.
  const Mark& mark_of(const Block& block) const;
  Block idle_block(std::size_t size);
  Block block_to_fill(std::size_t bytes);
  void give_back(Block block) noexcept;

  Context& context_;
  mutable std::mutex mutex_;
  CUstream stream_ = nullptr;
  std::uint64_t next_mark_ = 0;
  std::deque<Mark> marks_;  // oldest first
  std::deque<Block> idle_;  // in the order of their release
};

}  // namespace openrnn::cudnn
