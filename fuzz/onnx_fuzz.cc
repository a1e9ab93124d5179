#include <cstring>

#include "mutators/proto_mutator.h"
#include "onnx_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::formats::fuzz_onnx({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace openrnn::formats;  // NOLINT: one function
  constexpr int kDepth = 12;
  MutableMessage message;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Every eighth change is one of bytes, which breaks lengths.
  if (seed % 8 && parse_fields(bytes, kDepth, &message) && !message.empty()) {
    ProtoMutator(seed).change(&message);
    const std::string changed = write_fields(message);
    if (!changed.empty() && changed.size() <= max_size) {
      std::memcpy(data, changed.data(), changed.size());
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
