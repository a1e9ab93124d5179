// The threads on which PyTorch computes.
#pragma once

#include <string>

#include "openrnn/runtime.h"

namespace openrnn::python {

/// From now on torch_threads() are those of the OpenMP that the library at `path`, which is
/// loaded, uses. Returns whether it uses one.
bool find_torch_threads(const std::string& path);
/// PyTorch's; null: they were not found, or this is a forked child, where OpenMP has none.
HostThreads torch_threads() noexcept;

}  // namespace openrnn::python
