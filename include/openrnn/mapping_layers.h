// The layers of a whole model, apart from any framework: what stands around recurrent networks.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "openrnn/formats_model_file.h"
#include "openrnn/spec.h"

namespace openrnn {

/// One output of a layer. Those of a recurrent layer may be several: its output, or those of both
/// directions, then its states.
struct LayerOutput {
  std::string layer;
  std::int64_t index = 0;

  friend bool operator==(const LayerOutput&, const LayerOutput&) = default;
};

/// One array of a layer, by its name in the kind: 'kernel', 'bias', 'embeddings'.
struct LayerWeight {
  std::string name;
  Array values;
  /// As MappedNetwork::slots.
  std::map<std::string, Array> slots = {};
};

/// One layer of a model. Its kind says what it computes, and which options it has:
/// docs/model_layers.md.
struct MappedLayer {
  std::string name;
  /// 'input', 'embedding', 'recurrent', 'dense', ...: layer_kinds().
  std::string kind;
  /// Of layers before it.
  std::vector<LayerOutput> inputs = {};
  /// Those that are not at their defaults; the others may be left out.
  std::map<std::string, PlainValue> options = {};
  /// All that the kind has, or none where they are kept elsewhere. A recurrent layer has none: its
  /// network has them.
  std::vector<LayerWeight> weights = {};
  /// The tensors of the file that it was made from.
  std::vector<std::string> tensors = {};
};

/// What is known of a value between layers before there is one: B and T are -1.
struct LayerValue {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  /// Some of its time steps may be masked.
  bool masked = false;
};

/// The function of an activation: 'softmax', 'leaky_relu(0.2)'. What the two numbers are is the
/// function's own.
struct LayerFunction {
  std::string name;
  double alpha = 0.0, beta = 0.0;
};
/// Throws: ArgumentError listing the functions.
OPENRNN_API LayerFunction parse_layer_function(const std::string& text);

/// The names of the kinds, and of the options of one. Throws: ArgumentError for no kind.
OPENRNN_API std::vector<std::string> layer_kinds();
OPENRNN_API std::vector<std::string> layer_options(const std::string& kind);
/// The option's value, or its default. Throws: ArgumentError for an option that the kind lacks.
OPENRNN_API const PlainValue& layer_option(const MappedLayer& layer, std::string_view name);
template <class T>
const T& layer_option_as(const MappedLayer& layer, std::string_view name) {
  return std::get<T>(layer_option(layer, name));
}

/// The network of that name, null if there is none.
using FindSpec = std::function<const RnnSpec*(const std::string& name)>;

/// What a layer makes of inputs like these. Throws: ArgumentError naming the layer for what it
/// cannot take, for a wrong option, and for weights that do not fit.
OPENRNN_API std::vector<LayerValue> layer_outputs(const MappedLayer& layer,
                                                  std::span<const LayerValue> inputs,
                                                  const FindSpec& find_spec);
/// The same of all layers of a model, one behind the other. Throws: as above; for names that are
/// empty or there twice, for an input that no layer before gives, and for an output that none has.
OPENRNN_API std::map<std::string, std::vector<LayerValue>> check_layers(
    std::span<const MappedLayer> layers, std::span<const LayerOutput> outputs,
    const FindSpec& find_spec);

}  // namespace openrnn
