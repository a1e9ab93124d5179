// Whole models of Keras's files: the layers around the networks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mapping/keras/config.h"
#include "mapping/keras/values.h"
#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The networks that were made from a layer, by its number in KerasConfig::layers: of stacked cells
/// that differ each.
using NetworksOfLayers = std::map<std::ptrdiff_t, std::vector<std::string>>;

struct KerasWhole {
  const ModelFile& file;
  const ValueIndex& values;
  const KerasConfig& config;
  const NetworksOfLayers& networks;
  int keras_major = 3;
};

/// Adds layers and outputs, or a note that says why there are none. Throws: as ModelFile::read.
void add_keras_layers(const KerasWhole& whole, const std::string& json, MappedModel* model);

}  // namespace openrnn::mapping
