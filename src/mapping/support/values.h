// Values beside the tensors as text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::mapping {

/// For files whose metadata are strings: strings as they are, everything else as JSON. The last one
/// of a name counts.
std::map<std::string, std::string> text_values(const std::vector<NamedValue>& values);

}  // namespace openrnn::mapping
