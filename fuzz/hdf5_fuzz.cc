#include <string>

#include "formats/hdf5/structure/lookup3.h"
#include "model_file_entries.h"

extern "C" {

// Not there where the corpus is only replayed.
__attribute__((weak)) std::size_t LLVMFuzzerMutate(unsigned char* data, std::size_t size,
                                                   std::size_t max_size);

int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  openrnn::formats::fuzz_model_file({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // extern "C"

namespace {

// Bytes of a structure of newer files up to its checksum; 0 for none.
std::size_t covered_bytes(std::string_view at) {
  const auto byte = [&](std::size_t i) {
    return i < at.size() ? static_cast<unsigned char>(at[i]) : std::size_t{0};
  };
  if (at.starts_with("\x89HDF\r\n\x1a\n") && byte(8) >= 2) return 44;
  if (at.starts_with("FRHP")) return 142;
  if (at.starts_with("BTHD")) return 34;
  if (at.starts_with("FAHD")) return 24;
  if (!at.starts_with("OHDR")) return 0;
  const std::size_t flags = byte(5), size_bytes = std::size_t{1} << (flags & 3u);
  const std::size_t head = 6 + (flags & 0x20u ? 16 : 0) + (flags & 0x10u ? 4 : 0);
  std::size_t size = 0;
  for (std::size_t i = 0; i < size_bytes && i < 4; ++i) size |= byte(head + i) << (8 * i);
  return head + size_bytes + size;
}

}  // namespace

// Checksums are made right again, or no change behind one would be looked at.
extern "C" std::size_t LLVMFuzzerCustomMutator(unsigned char* data, std::size_t size,
                                               std::size_t max_size, unsigned int) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 0; at + 8 < size; ++at) {
    const std::size_t covered = covered_bytes(all.substr(at));
    if (covered == 0 || covered + 4 > size - at) continue;
    const std::uint32_t sum = openrnn::formats::lookup3(all.substr(at, covered));
    for (std::size_t i = 0; i < 4; ++i) {
      data[at + covered + i] = static_cast<unsigned char>(sum >> (8 * i));
    }
  }
  return size;
}
