// Decompresses deflate (RFC 1951), which zip archives and HDF5 use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace openrnn::formats {

/// Files whose data grow by more than this when they are decompressed are refused, so that a small
/// file cannot ask for all memory; deflate itself can reach 1032.
inline constexpr std::uint64_t kMostGrowth = 64, kAlwaysGrown = std::uint64_t{1} << 20;

/// Whether `bytes` are no more than decompressed data of a file of `file_bytes` may have.
constexpr bool may_grow_to(std::uint64_t file_bytes, std::uint64_t bytes) {
  return bytes <= kAlwaysGrown || (bytes - kAlwaysGrown) / kMostGrowth <= file_bytes;
}

/// Fills `out` with exactly `bytes` bytes. False, with some of them written, where `compressed` is
/// not one whole stream of that many.
bool inflate(std::string_view compressed, char* out, std::size_t bytes);
/// Fills `out` with the first bytes of a stream, of which the end may be missing. False where it
/// has not as many.
bool inflate_start(std::string_view compressed, char* out, std::size_t bytes);
/// As inflate, of a stream with zlib's header and checksum (RFC 1950).
bool inflate_zlib(std::string_view compressed, char* out, std::size_t bytes);

}  // namespace openrnn::formats
