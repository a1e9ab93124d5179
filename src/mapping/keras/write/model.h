// A model of Keras 3 that is being made of networks and the layers around them.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// One array of a layer.
struct SavedArray {
  /// Below the layer's group of `.h5`, 'lstm/cell/kernel'; below that of Keras 3's weights,
  /// 'cell/vars/0'.
  std::string name, path;
  Array values;
};

/// One layer of Keras.
struct SavedLayer {
  /// 'encoder', and the group of Keras 3's weights, 'lstm_1', 'bidirectional'.
  std::string name, group;
  std::vector<SavedArray> arrays;
  /// As it stands in the configuration.
  nlohmann::ordered_json node;
};

struct SavedModel {
  std::vector<SavedLayer> layers;
  /// Names of inputs and outputs in the configuration.
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  nlohmann::ordered_json outputs = nlohmann::ordered_json::array();
  /// The attribute kKerasNetworks; empty where each network is one layer of its own name.
  std::string names;
};

/// `format` is for messages; with `options` the file has a configuration for activations. A model
/// with layers is written whole, else each network behind an input of its own.
/// Throws: UnsupportedError naming what it cannot hold.
SavedModel make_saved_model(const MappedModel& model, std::string_view format, bool options);

/// The JSON of the whole model.
std::string keras_model_json(const SavedModel& model);

// ---- Parts of it
// ---------------------------------------------------------------------------------

/// A network as Keras computes it: one bias, or the two of a GRU that resets after the product.
/// Throws: UnsupportedError.
MappedNetwork keras_form(const MappedNetwork& given, std::string_view format, bool options);

/// Names and groups of the layers of one model.
class KerasNames {
 public:
  /// Layers of Keras have names that differ, and TensorFlow's scopes take few characters.
  std::string layer(std::string name);
  /// 'dense', 'dense_1' of the class Dense.
  std::string group(const std::string& type);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> numbers_;
};

/// How a recurrent layer is called, beside its network.
struct SavedCall {
  bool return_sequences = true, return_state = false, go_backwards = false, stateful = false;
  bool zero_output_for_mask = false, trainable = true;
  std::string merge = "concat";
};

/// Layer `layer` of the network. `inbound` as of node_json.
SavedLayer saved_recurrent(const MappedNetwork& network, std::int64_t layer,
                           const std::string& name, const SavedCall& call,
                           nlohmann::ordered_json inbound, KerasNames* names);
SavedLayer saved_input(const std::string& name, const Shape& shape, DType dtype, KerasNames* names);
/// The node of a layer of Keras 3; Keras 2 looks at class and configuration alone. `inbound` is the
/// list of its inputs.
nlohmann::ordered_json node_json(const std::string& type, nlohmann::ordered_json config,
                                 nlohmann::ordered_json inbound);
/// ["lstm", 0, 0, {}].
nlohmann::ordered_json input_json(const std::string& layer, std::int64_t index = 0);
nlohmann::ordered_json place_json(const std::string& layer, std::int64_t index = 0);

/// The model with the layers around the networks.
SavedModel make_saved_whole(const MappedModel& model, std::string_view format, bool options);

}  // namespace openrnn::mapping
