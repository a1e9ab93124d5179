// Models as JSON: those of RTNeural and of NeuralAmpModeler.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Layers 'lstm' and 'gru', each a network. Throws: as load_networks.
MappedModel map_rtneural(const ModelFile& file);
/// Networks one behind the other, each layer of them a layer. Throws: as save_networks.
void save_rtneural(const std::string& path, const MappedModel& model);

/// The LSTM of a file of that architecture, with its states to begin with; what follows it is in
/// the values 'head.weight' and 'head.bias'. Throws: as load_networks.
MappedModel map_nam(const ModelFile& file);
/// One LSTM, and those two values. Throws: as save_networks.
void save_nam(const std::string& path, const MappedModel& model);

}  // namespace openrnn::mapping
