// CRC-32 (IEEE 802.3), the checksum of zip archives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrnn::formats {

/// The checksum of what `crc` covered followed by these bytes; start with 0.
std::uint32_t crc32_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept;

}  // namespace openrnn::formats
