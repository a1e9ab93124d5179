// Model files of every framework as layers, ready to run and to train, and back.
#pragma once

#include "openrnn/layers.h"
#include "openrnn/mapping.h"

namespace openrnn {

/// One recurrent network of a file.
struct LoadedLayer {
  /// As MappedNetwork::name.
  std::string name;
  /// Built, with the weights of the file, on the default device.
  std::shared_ptr<layers::CudnnRnn> layer;
  /// [L*D, O] and, where has_cell(), [L*D, U]; empty where the file has none.
  std::vector<Array> initial_state = {};
};

/// The recurrent networks of a file, in its order. To run one without layers: PackedModel of
/// load_networks(), or load_packed(). Throws: as load_networks.
OPENRNN_API std::vector<LoadedLayer> load(const std::string& path, const MappingHints& hints = {});

/// Writes layers as networks of these names; see save_networks. Throws: as it does; StateError for
/// a layer that is not built.
OPENRNN_API void save(const std::string& path, std::span<const LoadedLayer> networks,
                      ModelFormat format);

}  // namespace openrnn
