#include "cudnn/rnn/aligned.h"

#include <cstdint>

namespace openrnn::cudnn {

bool is_aligned(const void* memory) {
  constexpr std::uintptr_t kWordBytes = 16;
  return reinterpret_cast<std::uintptr_t>(memory) % kWordBytes == 0;
}

void* Aligned::block(std::size_t bytes) {
  blocks_.push_back(context_.allocate(bytes));
  return blocks_.back().get();
}

const void* Aligned::in(const void* memory, std::int64_t elements) {
  if (is_aligned(memory)) return memory;
  const std::size_t bytes = static_cast<std::size_t>(elements) * element_bytes_;
  void* const to = block(bytes);
  context_.copy(to, memory, bytes);
  return to;
}

void* Aligned::out(void* memory, std::int64_t elements) {
  if (is_aligned(memory)) return memory;
  const std::size_t bytes = static_cast<std::size_t>(elements) * element_bytes_;
  void* const to = block(bytes);
  written_.push_back({memory, to, bytes});
  return to;
}

void* Aligned::in_out(void* memory, std::int64_t elements) {
  void* const to = out(memory, elements);
  if (to != memory) {
    context_.copy(to, memory, static_cast<std::size_t>(elements) * element_bytes_);
  }
  return to;
}

void Aligned::give() {
  for (const Written& each : written_) context_.copy(each.callers, each.block, each.bytes);
  written_.clear();
}

}  // namespace openrnn::cudnn
