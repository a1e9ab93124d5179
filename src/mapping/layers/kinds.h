// The one table of the kinds of layers: their inputs, options and what these may be.
#pragma once

#include <string_view>
#include <vector>

#include "openrnn/mapping_layers.h"

namespace openrnn::mapping {

/// An option and its default, which has its type.
struct LayerOptionFact {
  std::string_view name;
  PlainValue otherwise;
};

struct LayerKindFact {
  std::string_view name;
  std::size_t min_inputs = 1, max_inputs = 1;
  std::vector<LayerOptionFact> options = {};
  std::vector<LayerValue> (*infer)(const MappedLayer& layer, std::span<const LayerValue> inputs,
                                   const FindSpec& find_spec) = nullptr;
};

/// Throws: ArgumentError listing the kinds.
const LayerKindFact& layer_kind(const std::string& name);
const std::vector<LayerKindFact>& all_layer_kinds();

/// Throws: ArgumentError "[layers] the layer 'NAME' (KIND) WHAT".
[[noreturn]] void refuse_layer(const MappedLayer& layer, const std::string& what);

}  // namespace openrnn::mapping
