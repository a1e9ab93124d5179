// Blocks of a graph in place of the arrays of a call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Blocks that a graph reads and writes in place of the caller's arrays, whose addresses differ
/// from call to call. For a thread where the context is current.
class CallArrays {
 public:
  explicit CallArrays(Context& context) : context_(context) {}

  /// A block for an array of the call that is recorded; null gives null. Arrays come in one order,
  /// first those that are read.
  void* add(const void* callers, std::size_t bytes);
  /// Enqueues copies from, and to, arrays of the caller in the order of add, `first` being the
  /// place of the first of them. Null exactly where the recorded call had null.
  void take(std::span<const void* const> callers) const;
  void give(std::size_t first, std::span<void* const> callers) const;

 private:
  struct Block {
    std::shared_ptr<void> memory;
    std::size_t bytes;
  };
  Context& context_;
  std::vector<Block> blocks_;
};

}  // namespace openrnn::cudnn
