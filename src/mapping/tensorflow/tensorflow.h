// TensorFlow's cells, its own and Keras's in its checkpoints: names of variables and networks.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The networks of a checkpoint, a SavedModel or a frozen graph. Throws: as load_networks.
MappedModel map_tensorflow(const ModelFile& file, const MappingHints& hints);
/// Writes a checkpoint at the prefix `path`. Throws: as save_networks.
void save_tensorflow(const std::string& path, const MappedModel& model);

}  // namespace openrnn::mapping
