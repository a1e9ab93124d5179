// The recurrent layers of Keras: files of Keras 1, 2, tf.keras and 3 as networks, and back.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The networks of a file of one of Keras's kinds; each layer is one, and the layers of a network
/// that save_keras has divided are one again. Throws: as load_networks.
MappedModel map_keras(const ModelFile& file, const MappingHints& hints);

/// A whole model of Keras 3 as `.h5`, its weights alone, or its archive: each network as the layers
/// that it needs, behind an input of its own. Throws: as save_networks.
void save_keras_h5(const std::string& path, const MappedModel& model);
void save_keras_weights(const std::string& path, const MappedModel& model);
void save_keras_archive(const std::string& path, const MappedModel& model);

/// The attribute in which those say which layers are which network, as JSON: {"name": ["layer"]}.
inline constexpr const char* kKerasNetworks = "openrnn_networks";

/// One network of consecutive ones, or nothing if they are none. Throws: FormatError for an
/// attribute that is no such JSON.
void join_keras_layers(const std::string& path, const std::string& json, MappedModel* model);

}  // namespace openrnn::mapping
