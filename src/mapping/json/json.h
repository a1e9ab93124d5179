// Models as JSON: those of RTNeural and of NeuralAmpModeler.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Layers 'lstm' and 'gru', each a network, and the chain of all layers. Throws: as load_networks.
MappedModel map_rtneural(const ModelFile& file);
/// A chain of layers; of a model without layers, the networks one behind the other. Each layer of a
/// network is one of the file. Throws: as save_networks.
void save_rtneural(const std::string& path, const MappedModel& model);

/// The LSTM of a file of that architecture, with its states to begin with, and the dense layer
/// behind it. Throws: as load_networks.
MappedModel map_nam(const ModelFile& file);
/// One LSTM and one dense layer; of a model without layers, the values 'head.weight' and
/// 'head.bias'. Throws: as save_networks.
void save_nam(const std::string& path, const MappedModel& model);
/// Whether such a file holds a value of this name.
bool nam_holds(std::string_view name);

}  // namespace openrnn::mapping
