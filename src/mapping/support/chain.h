// Models whose layers stand one behind the other, for files that hold no others.
#pragma once

#include <string>
#include <string_view>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Throws: UnsupportedError "[save_networks] the layer 'NAME' has WHAT, which FORMAT cannot hold".
[[noreturn]] void refuse_held(const MappedLayer& layer, const std::string& what,
                              std::string_view format);

/// Throws: as above, unless the first layer is an input, each other one takes the first output of
/// the one before it alone, and that of the last one is the model's.
void require_chain(const MappedModel& model, std::string_view format);

}  // namespace openrnn::mapping
