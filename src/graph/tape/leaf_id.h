// Unique numbers.
#pragma once

#include <cstdint>

namespace openrnn::graph {

/// A new number above 0, for a leaf or a node; grows with time. Thread-safe.
std::uint64_t next_id() noexcept;

}  // namespace openrnn::graph
