// The layers around the networks as Keras's.
#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/write/model.h"
#include "mapping/support/chain.h"

namespace openrnn::mapping {

namespace {

using nlohmann::ordered_json;

// Keras's name of a function, or nothing: a layer of its own may have it.
std::optional<std::string> function_name(const LayerFunction& function) {
  for (const char* same : {"linear", "relu", "tanh", "sigmoid", "softmax", "exponential",
                           "softsign", "silu", "selu"}) {
    if (function.name == same) return function.name;
  }
  const bool keras_3 = function.alpha == 1.0 / 6.0 && function.beta == 0.5;
  const bool hard = function.name == "hard_sigmoid" || function.name == "hard_silu";
  if (hard && keras_3) return function.name;
  if (function.name == "elu" && function.alpha == 1.0) return "elu";
  if (function.name == "leaky_relu" && function.alpha == 0.2) return "leaky_relu";
  if (function.name == "clip" && function.alpha == 0.0 && function.beta == 6.0) return "relu6";
  return std::nullopt;
}

/// Class and options of a layer without a network.
struct KerasClass {
  std::string type;
  ordered_json config = ordered_json::object();
};

KerasClass activation_class(const MappedLayer& layer, std::string_view format) {
  const auto& text = layer_option_as<std::string>(layer, "activation");
  const LayerFunction function = parse_layer_function(text);
  if (const auto name = function_name(function)) return {"Activation", {{"activation", *name}}};
  if (function.name == "leaky_relu") return {"LeakyReLU", {{"negative_slope", function.alpha}}};
  if (function.name == "elu") return {"ELU", {{"alpha", function.alpha}}};
  if (function.name == "clip" && function.alpha == 0.0) {
    return {"ReLU", {{"max_value", function.beta}}};
  }
  refuse_held(layer, "the activation " + text, format);
}

KerasClass dense_class(const MappedLayer& layer, std::string_view format) {
  const auto& text = layer_option_as<std::string>(layer, "activation");
  const auto name = function_name(parse_layer_function(text));
  if (!name) refuse_held(layer, "the activation " + text, format);
  return {"Dense",
          {{"units", layer_option_as<std::int64_t>(layer, "units")},
           {"activation", *name},
           {"use_bias", layer_option_as<bool>(layer, "use_bias")}}};
}

KerasClass class_of_layer(const MappedLayer& layer, std::string_view format) {
  const std::string& kind = layer.kind;
  if (kind == "dense") return dense_class(layer, format);
  if (kind == "activation") return activation_class(layer, format);
  if (kind == "embedding") {
    return {"Embedding",
            {{"input_dim", layer_option_as<std::int64_t>(layer, "vocabulary")},
             {"output_dim", layer_option_as<std::int64_t>(layer, "dim")},
             {"mask_zero", layer_option_as<bool>(layer, "mask_zero")}}};
  }
  if (kind == "masking") {
    return {"Masking", {{"mask_value", layer_option_as<double>(layer, "mask_value")}}};
  }
  if (kind == "dropout") return {"Dropout", {{"rate", layer_option_as<double>(layer, "rate")}}};
  if (kind == "reshape") {
    return {"Reshape",
            {{"target_shape", layer_option_as<std::vector<std::int64_t>>(layer, "shape")}}};
  }
  if (kind == "repeat") {
    return {"RepeatVector", {{"n", layer_option_as<std::int64_t>(layer, "count")}}};
  }
  if (kind == "time_mean") return {"GlobalAveragePooling1D"};
  if (kind == "concat") {
    return {"Concatenate", {{"axis", layer_option_as<std::int64_t>(layer, "axis")}}};
  }
  constexpr std::pair<const char*, const char*> kMerges[] = {
      {"add", "Add"}, {"subtract", "Subtract"}, {"multiply", "Multiply"}, {"average", "Average"}};
  for (const auto& [ours, keras] : kMerges) {
    if (kind == ours) return {keras};
  }
  refuse_held(layer, "the kind " + kind, format);
}

/// A model that is being written.
class WholeWriter {
 public:
  WholeWriter(const MappedModel& model, std::string_view format, bool options)
      : model_(model), format_(format), options_(options) {
    values_ = check_layers(model.layers, model.outputs, find_spec_in(model));
    for (const MappedNetwork& network : model.networks) networks_[network.name] = &network;
  }

  SavedModel write() {
    // Files of Keras 3 number the weights of layers by an order that Keras computes for a graph: it
    // is certain where each layer takes the output of the one before.
    require_chain(model_, format_);
    for (const MappedLayer& layer : model_.layers) add(layer);
    for (const MappedLayer& layer : model_.layers) {
      if (layer.kind == "input") saved_.inputs.push_back(place_json(names_of_[layer.name]));
    }
    for (const LayerOutput& output : model_.outputs) {
      saved_.outputs.push_back(place_json(names_of_[output.layer], output.index));
    }
    if (renamed_) saved_.names = joined_.dump();
    return std::move(saved_);
  }

 private:
  void add(const MappedLayer& layer) {
    const LayerValue& value = values_.at(layer.name)[0];
    if (layer.kind == "recurrent") {
      add_recurrent(layer);
      return;
    }
    const std::string name = names_.layer(layer.name);
    names_of_[layer.name] = name;
    if (layer.kind == "input") {
      saved_.layers.push_back(saved_input(name, value.shape, value.dtype, &names_));
      return;
    }
    KerasClass made = class_of_layer(layer, format_);
    ordered_json config = {{"name", name},
                           {"trainable", !layer.options.contains("trainable") ||
                                             layer_option_as<bool>(layer, "trainable")},
                           {"dtype", dtype_name(value.dtype)}};
    config.update(made.config);
    SavedLayer saved{
        name, names_.group(made.type), {}, node_json(made.type, std::move(config), inbound(layer))};
    std::size_t number = 0;
    for (const LayerWeight& weight : layer.weights) {
      saved.arrays.push_back({message(name, "/", weight.name), message("vars/", number++),
                              Array(weight.values.view())});
    }
    saved_.layers.push_back(std::move(saved));
  }

  ordered_json inbound(const MappedLayer& layer) const {
    ordered_json inputs = ordered_json::array();
    for (const LayerOutput& from : layer.inputs) {
      inputs.push_back(input_json(names_of_.at(from.layer), from.index));
    }
    return inputs;
  }

  void add_recurrent(const MappedLayer& layer) {
    const auto& network_name = layer_option_as<std::string>(layer, "network");
    const MappedNetwork network = keras_form(*networks_.at(network_name), format_, options_);
    if (joined_.contains(network_name)) {
      refuse_held(layer, "the network of another layer", format_);
    }
    if (!layer_option_as<bool>(layer, "uses_mask")) {
      refuse_held(layer, "uses_mask false", format_);
    }
    const std::int64_t count = network.spec.num_layers;
    SavedCall call{.return_sequences = layer_option_as<bool>(layer, "return_sequences"),
                   .return_state = layer_option_as<bool>(layer, "return_state"),
                   .go_backwards = layer_option_as<bool>(layer, "reverse"),
                   .stateful = layer_option_as<bool>(layer, "stateful"),
                   .zero_output_for_mask = layer_option_as<bool>(layer, "zero_output_for_mask"),
                   .trainable = layer_option_as<bool>(layer, "trainable"),
                   .merge = layer_option_as<std::string>(layer, "merge")};
    if (count > 1 && call.go_backwards) refuse_held(layer, "reverse of several layers", format_);
    std::string before;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string name = names_.layer(count == 1 ? layer.name : message(layer.name, "_", i));
      renamed_ |= name != network_name;
      joined_[network_name].push_back(name);
      SavedCall one = call;
      if (i + 1 < count) one.return_sequences = true, one.merge = "concat";
      ordered_json from = i > 0 ? ordered_json::array({input_json(before)}) : inbound(layer);
      saved_.layers.push_back(saved_recurrent(network, i, name, one, std::move(from), &names_));
      before = name;
    }
    names_of_[layer.name] = before;
  }

  const MappedModel& model_;
  std::string_view format_;
  bool options_;
  std::map<std::string, std::vector<LayerValue>> values_;
  std::map<std::string, const MappedNetwork*> networks_;
  std::map<std::string, std::string> names_of_;
  KerasNames names_;
  SavedModel saved_;
  ordered_json joined_ = ordered_json::object();
  bool renamed_ = false;
};

}  // namespace

SavedModel make_saved_whole(const MappedModel& model, std::string_view format, bool options) {
  return WholeWriter(model, format, options).write();
}

}  // namespace openrnn::mapping
