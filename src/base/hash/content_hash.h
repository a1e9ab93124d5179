// A hash of memory at about the speed of reading it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrnn {

/// 64 bits of `bytes` bytes at `data`, continuing from `seed`; others on another processor. Two
/// contents that differ have equal hashes with a probability near 2^-64; not for contents that
/// somebody chooses to be equal.
std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept;
/// What other processors than those with AVX2 take.
std::uint64_t portable_content_hash(const void* data, std::size_t bytes,
                                    std::uint64_t seed) noexcept;

}  // namespace openrnn
