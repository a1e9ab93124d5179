// The inner loops of the meters, for the widest vectors of this processor.
#pragma once

#include <cstddef>

namespace openrnn::cli {

/// `turns` turns of independent fused multiply-adds in registers; returns the FLOP done.
double fma_loop(long turns);

/// Reads `count` floats, a multiple of 1024.
void read_loop(const float* data, std::size_t count);

}  // namespace openrnn::cli
