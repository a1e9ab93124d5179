// The configuration of a Keras model as a graph of layers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// A layer, and where a file has its weights.
struct KerasNode {
  /// Without weights; of a recurrent layer without its network.
  MappedLayer layer;
  /// Of a recurrent layer: as KerasConfig::by_path.
  std::string path;
  /// The layer of the outermost model that it is, or is in; its own name; that of the layer inside
  /// a TimeDistributed.
  std::string group, own_name, inner_name;
  bool nested = false;
};

struct KerasGraph {
  std::vector<KerasNode> nodes;
  std::vector<LayerOutput> outputs;
  /// What differs from Keras in training.
  std::vector<std::string> notes;
  /// Why it is none; empty where it is one.
  std::string fault;
};

/// Of a model's JSON, which has been parsed. Throws: nothing of what it holds; see `fault`.
KerasGraph parse_keras_graph(const nlohmann::json& model, int keras_major);

/// One layer that is no model and not recurrent. Sets kind and options; an empty kind: its output
/// is its input. Throws: NoKerasLayer.
void parse_keras_leaf(const nlohmann::json& node, int keras_major, KerasNode* out,
                      std::vector<std::string>* notes);
/// The options of a recurrent layer but for its network.
void parse_keras_recurrent(const nlohmann::json& node, int keras_major, KerasNode* out,
                           std::vector<std::string>* notes);
/// The sizes of "batch_shape" and the like: those that are null are -1. Empty where there are none.
std::vector<std::int64_t> keras_input_shape(const nlohmann::json& config);

}  // namespace openrnn::mapping
