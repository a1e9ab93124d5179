// A hash of memory at about the speed of reading it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openrnn::python {

/// 64 bits of `bytes` bytes at `data`, continuing from `seed`. Two contents that differ have equal
/// hashes with a probability of 2^-64; not for contents that somebody chooses to be equal.
std::uint64_t content_hash(const void* data, std::size_t bytes, std::uint64_t seed) noexcept;

}  // namespace openrnn::python
