// A layer of a whole model in one line.
#pragma once

#include "openrnn/mapping_layers.h"

namespace openrnn::cli {

/// 'dense, activation softmax, units 2 of reader: float32 [-1, 2]'.
std::string text_of_layer(const MappedLayer& layer, const std::vector<LayerValue>& outputs);

}  // namespace openrnn::cli
