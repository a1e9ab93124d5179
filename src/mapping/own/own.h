// OpenRNN's own files: one of safetensors with every network whole.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Whether a file of safetensors says that it is one.
bool is_own(const ModelFile& file);
/// Compares every checksum. Throws: as NetworkFile.
MappedModel load_own(const ModelFile& file);
/// Holds everything. Throws: ArgumentError for a value with a name of our own ('openrnn.');
/// as write_safetensors.
void save_own(const std::string& path, const MappedModel& model);

}  // namespace openrnn::mapping
