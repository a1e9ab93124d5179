// The records of a zip archive, as its reader and its writer know them (APPNOTE.TXT 6.3).
#pragma once

#include <cstdint>

namespace openrnn::formats {

inline constexpr std::uint32_t kZipLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kZipCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kZipEndSignature = 0x06054b50;
inline constexpr std::uint32_t kZip64EndSignature = 0x06064b50;
inline constexpr std::uint32_t kZip64LocatorSignature = 0x07064b50;

/// Without names, extra fields and comments.
inline constexpr std::uint64_t kZipLocalBytes = 30, kZipCentralBytes = 46, kZipEndBytes = 22;
inline constexpr std::uint64_t kZip64EndBytes = 56, kZip64LocatorBytes = 20;

/// In a 32-bit field: the value is in the ZIP64 extra field or record.
inline constexpr std::uint32_t kZipIn64 = 0xffffffffu;
inline constexpr std::uint16_t kZipCountIn64 = 0xffffu;
inline constexpr std::uint16_t kZip64Extra = 0x0001;

/// The method of compressed entries that everyone has.
inline constexpr std::uint16_t kZipDeflated = 8;
inline constexpr std::uint16_t kZipEncrypted = 1u << 0, kZipUtf8 = 1u << 11;

}  // namespace openrnn::formats
