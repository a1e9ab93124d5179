#include "base/crc/crc32c.h"

#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include "base/crc/crc_tables.h"

namespace openrnn {

namespace {

constexpr CrcTables kCrc32cTables = make_crc_tables(0x82f63b78u);

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t extend_sse42(std::uint32_t crc, const void* data,
                                                             std::size_t size) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t state = ~crc;
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; size; --size, ++at) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_extend_portable(std::uint32_t crc, const void* data,
                                     std::size_t size) noexcept {
  return extend_crc(kCrc32cTables, crc, data, size);
}

std::uint32_t crc32c_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return extend_sse42(crc, data, size);
#endif
  return crc32c_extend_portable(crc, data, size);
}

}  // namespace openrnn
