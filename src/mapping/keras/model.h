// A model of Keras 3 that is being made of networks.
#pragma once

#include <string>
#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// One recurrent layer of Keras: one layer of a network.
struct SavedLayer {
  /// 'LSTM', 'GRU', 'SimpleRNN', and the group of Keras 3's weights, 'lstm_1', 'bidirectional'.
  std::string name, type, group;
  const MappedNetwork* network = nullptr;
  std::int64_t layer = 0;
  /// Of one direction, or of both behind one another.
  std::vector<Array> arrays;
};

struct SavedModel {
  /// As Keras has them: without forget_bias, with the biases of their class.
  std::vector<MappedNetwork> networks;
  std::vector<SavedLayer> layers;
  /// The attribute kKerasNetworks; empty where each network is one layer of its own name.
  std::string names;
};

/// `format` is for messages; with `options` the file has a configuration for activations.
/// Throws: UnsupportedError naming what it cannot hold.
SavedModel make_saved_model(const MappedModel& model, std::string_view format, bool options);

/// The JSON of the whole model.
std::string keras_model_json(const SavedModel& model);

}  // namespace openrnn::mapping
