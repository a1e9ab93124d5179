#include "cudnn/graphs/call_arrays.h"

namespace openrnn::cudnn {

void* CallArrays::add(const void* callers, std::size_t bytes) {
  blocks_.push_back({callers ? context_.allocate(bytes) : nullptr, bytes});
  return blocks_.back().memory.get();
}

void CallArrays::take(std::span<const void* const> callers) const {
  for (std::size_t n = 0; n < callers.size(); ++n) {
    if (blocks_[n].memory) context_.copy(blocks_[n].memory.get(), callers[n], blocks_[n].bytes);
  }
}

void CallArrays::give(std::size_t first, std::span<void* const> callers) const {
  for (std::size_t n = 0; n < callers.size(); ++n) {
    const Block& block = blocks_[first + n];
    if (block.memory) context_.copy(callers[n], block.memory.get(), block.bytes);
  }
}

}  // namespace openrnn::cudnn
