// Reflected 32-bit CRCs by tables, eight bytes at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace openrnn {

static_assert(std::endian::native == std::endian::little, "files are little-endian, as the host");

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[n][b] is the remainder of byte b followed by n zero bytes.
constexpr CrcTables make_crc_tables(std::uint32_t reflected_polynomial) {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? reflected_polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t n = 1; n < 8; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

/// The checksum of what `crc` covered followed by these bytes; start with 0.
inline std::uint32_t extend_crc(const CrcTables& tables, std::uint32_t crc, const void* data,
                                std::size_t size) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t state = ~crc;
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= state;
    state = 0;
    for (std::size_t n = 0; n < 8; ++n) state ^= tables[7 - n][(word >> (8 * n)) & 0xff];
  }
  for (; size; --size, ++at) state = (state >> 8) ^ tables[0][(state ^ *at) & 0xff];
  return ~state;
}

}  // namespace openrnn
