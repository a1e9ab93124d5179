// Extras in a file.
#pragma once

#include <string_view>

#include "openrnn/checkpoint.h"

namespace openrnn::checkpoint {

inline constexpr std::string_view kExtrasPrefix = "openrnn/";

/// Everything under the prefix.
Extras extras_of(const TensorBundleReader& reader);

}  // namespace openrnn::checkpoint
