// The compiled kernels inside this library.
#pragma once

#include <span>

namespace openrnn::cudnn {

/// One image for cuModuleLoadData per file of src/cudnn/kernels. Its source is made by the build.
std::span<const void* const> fatbins();

}  // namespace openrnn::cudnn
