// Launches of the device's kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "cudnn/gpu/context.h"
#include "cudnn/kernels/arguments.h"
#include "openrnn/device.h"

namespace openrnn::cudnn {

/// Grid, block and shared memory of a launch.
struct LaunchShape {
  unsigned grid_x = 1, grid_y = 1;
  unsigned block_x = gpu::kThreads, block_y = 1;
  unsigned shared_bytes = 0;
};

/// For kernels of one thread an element. Beyond 2^24 elements a thread computes several.
inline LaunchShape for_elements(std::int64_t size) {
  const std::int64_t blocks = (size - 1) / gpu::kThreads + 1;
  return {.grid_x = static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 16))};
}

/// For kernels of one thread a cell of [rows, cols]: narrow rows share a block.
inline LaunchShape for_cells(std::int64_t rows, std::int64_t cols) {
  unsigned across = 1;
  while (across < gpu::kThreads && across < cols) across *= 2;
  const unsigned down = gpu::kThreads / across;
  return {.grid_x = static_cast<unsigned>(std::min<std::int64_t>((rows - 1) / down + 1, 1 << 20)),
          .grid_y = static_cast<unsigned>(std::min<std::int64_t>((cols - 1) / across + 1, 1 << 10)),
          .block_x = across,
          .block_y = down};
}

/// `count` as the x of a grid. Throws: ArgumentError when a GPU has no such grid.
unsigned grid_blocks(const char* call, std::int64_t count);

/// Enqueues the kernel, whose one parameter is of type Arguments. The context must be current.
template <class Arguments>
void launch(Context& context, const char* kernel, const LaunchShape& shape, Arguments arguments) {
  std::array<void*, 1> pointers{&arguments};
  check(libraries().driver.launch(context.kernel(kernel), shape.grid_x, shape.grid_y, 1,
                                  shape.block_x, shape.block_y, 1, shape.shared_bytes,
                                  context.stream(), pointers.data(), nullptr),
        kernel);
}

/// Throws: TypeError naming the call unless the dtype is floating.
gpu::Number number_of(const char* call, DType dtype);

}  // namespace openrnn::cudnn
