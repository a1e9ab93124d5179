// The threads on which PyTorch computes.
#pragma once

#include <string>

#include "openrnn/runtime.h"

namespace openrnn::python::torch {

/// From now on threads_of_torch() are those of the OpenMP that the library at `path`, which is
/// loaded, uses. Returns whether it uses one.
bool find_threads(const std::string& path);
/// PyTorch's; null: they were not found, or this is a forked child, where OpenMP has none.
HostThreads threads_of_torch() noexcept;

}  // namespace openrnn::python::torch
