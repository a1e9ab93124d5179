// The layers of a whole model in OpenRNN's own files.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The keys of the metadata that say them.
inline constexpr std::string_view kLayersKey = "openrnn.layers",
                                  kLayersChecksumKey = "openrnn.layers_checksum";

/// The text of kLayersKey; adds the weights to `views`, which stay the model's.
std::string layers_to_json(const MappedModel& model, std::vector<NamedView>* views);
/// Sets layers and outputs of a model whose networks are there; compares the checksums of weights.
/// Throws: FormatError.
void layers_from_json(const ModelFile& file, const std::string& text, MappedModel* model);
/// CRC-32C of a text, 8 hexadecimal digits.
std::string text_checksum(const std::string& text);

}  // namespace openrnn::mapping
