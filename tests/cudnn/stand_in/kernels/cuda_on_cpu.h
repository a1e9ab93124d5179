// What a .cu file of ours needs of the CUDA language, for an ordinary C++ compiler. To be included
// before the .cu file.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's own names.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
// Blocks run one after another, so a block's shared memory is one variable.
#define __shared__ static
#define __launch_bounds__(...)
// NOLINTEND(bugprone-reserved-identifier)

namespace openrnn::stand_in {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Waits until every thread of the block is here.
void sync_threads();
/// The dynamic shared memory of the block that runs; `extern __shared__` on a GPU.
void* shared_memory();

}  // namespace openrnn::stand_in

// Set by the machine before it lets a thread run.
extern openrnn::stand_in::Dim3 threadIdx, blockIdx, blockDim, gridDim;

// NOLINTNEXTLINE(bugprone-reserved-identifier): CUDA's own name
inline void __syncthreads() { openrnn::stand_in::sync_threads(); }
