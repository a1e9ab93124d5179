// The layers of a file of RTNeural, whatever they are.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

struct RtneuralLayer {
  /// 3 of 'layers.3'.
  std::size_t number = 0;
  /// 'lstm', 'dense'; empty if the file does not say it.
  std::string type;
  /// The key 'name', which we write: of a recurrent layer its network's, which may be empty.
  std::optional<std::string> given_name;
  std::string activation;
  std::vector<const TensorInfo*> weights;

  /// 'layers.3'.
  std::string place() const;
  std::string name() const { return given_name.value_or("").empty() ? place() : *given_name; }
  bool is_recurrent() const { return type == "lstm" || type == "gru"; }
};
/// Those of which the file says something, in its order. Views into `file`.
std::vector<RtneuralLayer> rtneural_layers(const ModelFile& file);

/// The network that begins at a layer, by the layer's number; nothing for a layer that is a later
/// one of a network. Those of which no network was made are not in it.
using RtneuralNetworks = std::map<std::size_t, std::optional<std::string>>;

/// Adds layers and outputs, or a note that says why there are none: none for a network that was not
/// made, of which there is one already.
void add_rtneural_layers(const ModelFile& file, const std::vector<RtneuralLayer>& given,
                         const RtneuralNetworks& networks, MappedModel* model);

}  // namespace openrnn::mapping
