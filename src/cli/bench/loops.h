// The inner loops of the meters, for the widest vectors of this processor.
#pragma once

#include <cstddef>

namespace openrnn::cli {

/// `iterations` iterations of independent fused multiply-adds in registers; returns the FLOP done.
double fma_loop(long iterations);

/// Reads `count` floats, a multiple of 1024.
void read_loop(const float* data, std::size_t count);

}  // namespace openrnn::cli
