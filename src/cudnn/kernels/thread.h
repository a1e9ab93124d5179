// The elements of a thread.
#pragma once

#include <cstdint>

namespace openrnn::gpu {

/// Calls f(i) for this thread's share of [0, size) in a grid of one dimension.
template <class F>
__device__ inline void each_element(std::int64_t size, const F& f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size;
       i += step) {
    f(i);
  }
}

/// Calls f(row, col) for this thread's share of [rows, cols]: columns along x, rows along y of the
/// block; rows along x, columns along y of the grid, whose x may be larger.
template <class F>
__device__ inline void each_cell(std::int64_t rows, std::int64_t cols, const F& f) {
  const std::int64_t row_step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  const std::int64_t col_step = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < rows; row += row_step) {
    for (std::int64_t col = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
         col < cols; col += col_step) {
      f(row, col);
    }
  }
}

/// The block's shared memory, as many bytes as the launch says.
template <class T>
__device__ inline T* shared_memory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char memory[];
  return reinterpret_cast<T*>(memory);
#else
  return static_cast<T*>(stand_in::shared_memory());
#endif
}

}  // namespace openrnn::gpu
