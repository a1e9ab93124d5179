// The layers around the networks of JSON's files, which are chains.
#pragma once

#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// An input [B, T, width] as the first layer of the model.
void begin_chain(std::int64_t width, std::string name, MappedModel* model);
/// The layer behind the last one; it becomes the model's output.
void append_layer(MappedLayer layer, MappedModel* model);
/// Of weights `kernel` [in, units] and, unless it is empty, `bias`.
MappedLayer dense_layer(std::string name, Array kernel, std::optional<Array> bias);

/// One layer behind the input.
struct JsonLink {
  const MappedLayer* layer = nullptr;
  /// Of a recurrent one.
  const MappedNetwork* network = nullptr;
  /// Of its output.
  std::int64_t width = 0;
};
/// The chain of a model that has layers: recurrent, dense and activations, all of whose outputs are
/// sequences of float32. Throws: UnsupportedError naming the layer and what the format cannot hold.
std::vector<JsonLink> json_chain(const MappedModel& model, std::string_view format);

/// The weight of that name, null if there is none.
const Array* layer_weight(const MappedLayer& layer, std::string_view name);

}  // namespace openrnn::mapping
