// Launches kernels with arguments of their own types.
#pragma once

#include <algorithm>
#include <array>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// The shape of a launch; what is not named is 1.
struct Grid {
  unsigned blocks = 1, blocks_y = 1;
  unsigned threads = 1, threads_y = 1;
  unsigned shared_bytes = 0;
};

/// For kernels that walk `elements` in steps of the whole grid.
inline Grid grid_for(const Context& context, std::int64_t elements, unsigned threads = 256) {
  // Enough blocks for every multiprocessor to hide the latency of memory.
  const std::int64_t most = std::int64_t{32} * std::max(context.multiprocessors(), 1);
  const std::int64_t wanted = (elements + threads - 1) / threads;
  Grid grid;
  grid.blocks = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most));
  grid.threads = threads;
  return grid;
}

/// Enqueues the kernel. The types of `arguments` must be those of its parameters, to the byte. For a
/// thread where the context is current.
template <class... Arguments>
void launch(Context& context, const char* kernel, const Grid& grid, Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers{&arguments...};
  check(libraries().driver.launch(context.kernel(kernel), grid.blocks, grid.blocks_y, 1,
                                  grid.threads, grid.threads_y, 1, grid.shared_bytes,
                                  context.stream(), pointers.data(), nullptr),
        kernel);
}

}  // namespace openrnn::cudnn
