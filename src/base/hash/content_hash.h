// A hash of memory at about the speed of reading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace openrnn {

/// 64 bits of `bytes` bytes at `data`, continuing from `seed`; others on another processor. Two
/// contents that differ have equal hashes with a probability near 2^-64; not for contents that
/// somebody chooses to be equal.
std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept;
using ContentHash = std::uint64_t (*)(const void* data, std::size_t bytes,
                                      std::uint64_t seed) noexcept;
/// Those that this processor can compute; content_hash is the first, and the last is any one's.
std::span<const ContentHash> content_hashes() noexcept;

}  // namespace openrnn
