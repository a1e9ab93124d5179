// Aligned addresses for cuDNN.
#pragma once

#include <memory>
#include <vector>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Whether it begins at a multiple of the widest word of a GPU's memory operations. Null does.
bool is_aligned(const void* memory);

/// The addresses of one call of cuDNN, whose kernels may read and write words of 16 bytes. An
/// unaligned one, such as a part of an array with odd rows, is replaced by that of a block: it
/// holds a copy of what is read, and what is written is copied back by give(). Null stays null. For
/// a thread where the context is current.
class Aligned {
 public:
  Aligned(Context& context, std::size_t element_bytes)
      : context_(context), element_bytes_(element_bytes) {}

  const void* in(const void* memory, std::int64_t elements);
  void* out(void* memory, std::int64_t elements);
  /// Read and written.
  void* in_out(void* memory, std::int64_t elements);
  /// After the call was enqueued.
  void give();

 private:
  struct Written {
    void* callers;
    const void* block;
    std::size_t bytes;
  };
  void* block(std::size_t bytes);

  Context& context_;
  std::size_t element_bytes_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<Written> written_;
};

}  // namespace openrnn::cudnn
