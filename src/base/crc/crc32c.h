// CRC-32C (Castagnoli) and the mask that TensorFlow's files store it under.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace openrnn {

/// The checksum of what `crc` covered followed by these bytes; start with 0.
std::uint32_t crc32c_extend(std::uint32_t crc, const void* data, std::size_t size) noexcept;
inline std::uint32_t crc32c(std::string_view bytes) noexcept {
  return crc32c_extend(0, bytes.data(), bytes.size());
}
/// The same by tables: for CPUs without the instruction.
std::uint32_t crc32c_extend_portable(std::uint32_t crc, const void* data,
                                     std::size_t size) noexcept;

// A checksum of bytes that contain their own checksum is weak: hence the mask.
inline constexpr std::uint32_t kCrcMaskDelta = 0xa282ead8u;
inline std::uint32_t mask_crc(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + kCrcMaskDelta;
}
inline std::uint32_t unmask_crc(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - kCrcMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace openrnn
