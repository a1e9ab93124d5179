#include "mapping/keras/model.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/message.h"
#include "mapping/keras/arrays.h"
#include "mapping/keras/config.h"
#include "mapping/support/biases.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

using nlohmann::ordered_json;

struct SavedClass {
  const char *type, *group;
};

SavedClass class_of(const RnnSpec& spec) {
  if (spec.is_lstm()) return {"LSTM", "lstm"};
  if (spec.mode == RnnMode::kGru) return {"GRU", "gru"};
  return {"SimpleRNN", "simple_rnn"};
}

[[noreturn]] void refuse(const MappedNetwork& network, const std::string& what,
                         std::string_view format) {
  throw UnsupportedError(message("[save_networks] ", network_called(network.name), " has ", what,
                                 ", which ", format, " cannot hold"));
}

void require_functions(const MappedNetwork& network, std::string_view format) {
  const RnnSpec& spec = network.spec;
  if (spec.is_lstm() && spec.candidate_activation() != spec.cell_activation()) {
    refuse(network,
           message("activation ", to_string(spec.candidate_activation()), " and output_activation ",
                   to_string(spec.cell_activation())),
           format);
  }
  std::vector<CellActivation> used{spec.candidate_activation()};
  if (spec.num_gates() > 1) used.push_back(spec.gate_activation());
  for (const CellActivation& one : used) {
    if (!keras_name_of(one)) refuse(network, "the activation " + to_string(one), format);
  }
}

// The network as Keras computes it: one bias, or the two of a GRU that resets after the product.
MappedNetwork keras_form(const MappedNetwork& given, std::string_view format, bool options) {
  constexpr std::string_view kHeld[] = {"reset_after",         "use_bias",   "single_bias",
                                        "forget_bias",         "activation", "output_activation",
                                        "recurrent_activation"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, format,
               std::span(kHeld).first(options ? std::size(kHeld) : 4));
  if (!options && network.spec.mode == RnnMode::kRnnRelu) refuse(network, "relu", format);
  if (network.initial_h || network.initial_c) refuse(network, "initial states", format);
  require_functions(network, format);
  network = without_forget_bias(network);
  if (!network.spec.use_bias) return network;
  const bool two = network.spec.mode == RnnMode::kGru && network.spec.reset_after;
  return with_biases(network, two ? 2 : 1);
}

// Layers of Keras have names that differ, and TensorFlow's scopes take few characters.
std::string layer_name(std::string name, std::set<std::string>* taken) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  for (char& c : name) {
    if (c == '/') c = '.';
    if (!is_plain(c) && c != '-') c = '_';
  }
  if (name.empty() || !is_plain(name[0])) name = "rnn" + name;
  std::string unequal = name;
  for (int i = 1; !taken->insert(unequal).second; ++i) unequal = message(name, "_", i);
  return unequal;
}

std::string group_of(const RnnSpec& spec, std::map<std::string, int>* numbers) {
  const bool both = spec.direction == Direction::kBidirectional;
  const std::string group = both ? "bidirectional" : class_of(spec).group;
  const int number = (*numbers)[group]++;
  return number ? message(group, "_", number) : group;
}

std::vector<Array> arrays_of(const MappedNetwork& network, std::int64_t layer) {
  const ParamsLayout layout(network.spec);
  std::vector<Array> arrays;
  for (std::int64_t direction = 0; direction < network.spec.num_dirs(); ++direction) {
    for (Array& array :
         keras_arrays(layout, {.layer = layer, .direction = direction}, network.params.view())) {
      arrays.push_back(std::move(array));
    }
  }
  return arrays;
}

// The configuration of one direction.
ordered_json options_of_layer(const RnnSpec& spec, const std::string& name) {
  ordered_json config = {{"name", name},
                         {"trainable", true},
                         {"dtype", dtype_name(spec.dtype)},
                         {"return_sequences", true},
                         {"return_state", false},
                         {"go_backwards", false},
                         {"stateful", false},
                         {"unroll", false},
                         {"units", spec.num_units},
                         {"activation", *keras_name_of(spec.candidate_activation())},
                         {"use_bias", spec.use_bias},
                         {"dropout", 0.0},
                         {"recurrent_dropout", 0.0}};
  if (spec.num_gates() > 1) {
    config["recurrent_activation"] = *keras_name_of(spec.gate_activation());
  }
  if (spec.mode == RnnMode::kGru) config["reset_after"] = spec.reset_after;
  return config;
}

// As Keras 3 names objects; Keras 2 looks at class and configuration alone.
ordered_json object_json(const char* module, const std::string& type, ordered_json config) {
  return {{"module", module},
          {"class_name", type},
          {"config", std::move(config)},
          {"registered_name", nullptr}};
}

ordered_json layer_json(const SavedLayer& layer, const std::string& input) {
  const RnnSpec& spec = layer.network->spec;
  const bool both = spec.direction == Direction::kBidirectional;
  ordered_json node = object_json("keras.layers", layer.type,
                                  options_of_layer(spec, (both ? "forward_" : "") + layer.name));
  if (both) {
    node = object_json("keras.layers", "Bidirectional",
                       {{"name", layer.name},
                        {"trainable", true},
                        {"dtype", dtype_name(spec.dtype)},
                        {"merge_mode", "concat"},
                        {"layer", std::move(node)}});
  }
  node["name"] = layer.name;
  node["inbound_nodes"] = ordered_json::array(
      {ordered_json::array({ordered_json::array({input, 0, 0, ordered_json::object()})})});
  return node;
}

ordered_json place_json(const std::string& layer) { return ordered_json::array({layer, 0, 0}); }

}  // namespace

SavedModel make_saved_model(const MappedModel& model, std::string_view format, bool options) {
  SavedModel saved;
  for (const MappedNetwork& network : model.networks) {
    saved.networks.push_back(keras_form(network, format, options));
  }
  ordered_json names = ordered_json::object();
  bool renamed = false;
  std::set<std::string> taken;
  std::map<std::string, int> numbers;
  for (const MappedNetwork& network : saved.networks) {
    const RnnSpec& spec = network.spec;
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      const std::string wanted =
          spec.num_layers == 1 ? network.name : message(network.name, "_", layer);
      const std::string name = layer_name(wanted, &taken);
      renamed |= name != network.name;
      names[network.name].push_back(name);
      saved.layers.push_back({.name = name,
                              .type = class_of(spec).type,
                              .group = group_of(spec, &numbers),
                              .network = &network,
                              .layer = layer,
                              .arrays = arrays_of(network, layer)});
    }
  }
  if (renamed) saved.names = names.dump();
  return saved;
}

std::string keras_model_json(const SavedModel& model) {
  ordered_json layers = ordered_json::array(), inputs = layers, outputs = layers;
  std::string before;
  for (const SavedLayer& layer : model.layers) {
    const RnnSpec& spec = layer.network->spec;
    if (layer.layer == 0) {
      before = layer.name + "_input";
      ordered_json input = object_json("keras.layers", "InputLayer",
                                       {{"batch_shape", {nullptr, nullptr, spec.input_size}},
                                        {"dtype", dtype_name(spec.dtype)},
                                        {"name", before}});
      input["name"] = before;
      input["inbound_nodes"] = ordered_json::array();
      layers.push_back(std::move(input));
      inputs.push_back(place_json(before));
    }
    layers.push_back(layer_json(layer, before));
    before = layer.name;
    if (layer.layer + 1 == spec.num_layers) outputs.push_back(place_json(before));
  }
  return object_json("keras.src.models.functional", "Functional",
                     {{"name", "networks"},
                      {"trainable", true},
                      {"layers", std::move(layers)},
                      {"input_layers", std::move(inputs)},
                      {"output_layers", std::move(outputs)}})
      .dump();
}

}  // namespace openrnn::mapping
