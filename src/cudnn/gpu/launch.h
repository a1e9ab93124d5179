// Launches kernels with arguments of their own types.
#pragma once

#include <algorithm>
#include <array>

#include "cudnn/gpu/context.h"

namespace openrnn::cudnn {

/// Blocks and threads of a launch along x.
struct Grid {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;
};

/// For kernels that walk `elements` in steps of the whole grid.
inline Grid grid_for(const Context& context, std::int64_t elements, unsigned threads = 256) {
  // Enough blocks for every multiprocessor to hide the latency of memory.
  const std::int64_t most = std::int64_t{32} * context.multiprocessors();
  const std::int64_t wanted = (elements + threads - 1) / threads;
  return {static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, most))),
          threads};
}

/// Enqueues the kernel. The types of `arguments` must be those of its parameters, to the byte.
template <class... Arguments>
void launch(Context& context, const char* kernel, Grid grid, Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers{&arguments...};
  check(libraries().driver.launch(context.kernel(kernel), grid.blocks, 1, 1, grid.threads, 1, 1,
                                  grid.shared_bytes, context.stream(), pointers.data(), nullptr),
        kernel);
}

}  // namespace openrnn::cudnn
