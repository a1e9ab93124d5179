// Memory of calls that may be recorded.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cudnn/gpu/pool.h"

namespace openrnn::cudnn {

/// Blocks of one call of the engine, taken from the pool. Released blocks are kept for the call's
/// next requests until the arena is destroyed: so no other call gets the addresses of a graph. An
/// arena that has reserved the blocks of an earlier call serves an equal one without taking more.
/// Blocks that outlive it return to the pool one by one. Thread-safe.
class Arena {
 public:
  explicit Arena(Pool& pool);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// As Pool::allocate. Throws: GpuError when it is sealed and has no block that fits.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Of every block that it has.
  std::vector<std::size_t> sizes() const;
  void reserve(const std::vector<std::size_t>& sizes);
  /// From now on it takes nothing more.
  void seal();
  /// Returns unused blocks.
  void trim();

 private:
  struct State;
  struct GiveBack;

  Pool& pool_;
  std::shared_ptr<State> state_;
};

}  // namespace openrnn::cudnn
