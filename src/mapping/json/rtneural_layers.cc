// RTNeural's layers as those of a whole model.
#include <algorithm>
#include <charconv>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/json/chain.h"
#include "mapping/json/rtneural.h"

namespace openrnn::mapping {

namespace {

/// Why there is no whole model; empty where it has been said.
struct NoRtneuralModel {
  std::string why;
};

/// 3 and 'type' of 'layers.3.type'.
struct LayerKey {
  std::size_t layer = 0;
  std::string_view key;
};

std::optional<LayerKey> parse_layer_key(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  LayerKey found;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.layer);
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || digits == name.size() || name[digits] != '.') return std::nullopt;
  found.key = name.substr(digits + 1);
  return found;
}

// Our name of what a layer computes at the end; RTNeural's elu has the factor 1.
std::string function_of_rtneural(const RtneuralLayer& layer) {
  if (layer.activation.empty()) return "linear";
  for (const char* same : {"linear", "tanh", "relu", "sigmoid", "softmax", "elu"}) {
    if (layer.activation == same) return layer.activation;
  }
  throw NoRtneuralModel{message("'", excerpt(layer.name()), "' has the activation '",
                                excerpt(layer.activation), "', which is not computed here")};
}

bool is_dense(const RtneuralLayer& layer) {
  return layer.type == "dense" || layer.type == "time-distributed-dense";
}

MappedLayer read_dense(const ModelFile& file, const RtneuralLayer& layer) {
  const auto& infos = layer.weights;
  const bool fits = (infos.size() == 1 || infos.size() == 2) && infos[0]->shape.size() == 2 &&
                    (infos.size() == 1 || infos[1]->shape == Shape{infos[0]->shape[1]});
  if (!fits) {
    throw NoRtneuralModel{message("the ", infos.size(), " arrays of '", excerpt(layer.name()),
                                  "' have not the shapes of a dense layer")};
  }
  std::optional<Array> bias;
  if (infos.size() == 2) bias = file.read(infos[1]->name);
  MappedLayer made = dense_layer(layer.name(), file.read(infos[0]->name), std::move(bias));
  made.options["activation"] = function_of_rtneural(layer);
  for (const TensorInfo* info : infos) made.tensors.push_back(info->name);
  return made;
}

MappedLayer read_layer_of(const ModelFile& file, const RtneuralLayer& layer) {
  if (is_dense(layer)) return read_dense(file, layer);
  if (layer.type == "activation") {
    return {.name = layer.name(),
            .kind = "activation",
            .options = {{"activation", function_of_rtneural(layer)}}};
  }
  throw NoRtneuralModel{message("'", excerpt(layer.name()), "' is of the type '",
                                excerpt(layer.type), "', which is not computed here")};
}

// Of the first layer with weights: activations before it keep the width.
std::int64_t width_of_input(const std::vector<RtneuralLayer>& layers) {
  for (const RtneuralLayer& layer : layers) {
    if (!layer.weights.empty() && !layer.weights[0]->shape.empty()) {
      return layer.weights[0]->shape[0];
    }
  }
  throw NoRtneuralModel{"no layer has weights"};
}

void make_rtneural_layers(const ModelFile& file, const std::vector<RtneuralLayer>& given,
                          const RtneuralNetworks& networks, MappedModel* model) {
  std::string input = "input";
  const auto is_taken = [&](const RtneuralLayer& layer) { return layer.name() == input; };
  while (std::ranges::any_of(given, is_taken)) input += '_';
  begin_chain(width_of_input(given), input, model);
  std::size_t expected = 0;
  for (const RtneuralLayer& layer : given) {
    if (layer.number != expected++) {
      throw NoRtneuralModel{message("'layers.", expected - 1, "' has no type")};
    }
    if (!layer.is_recurrent()) {
      append_layer(read_layer_of(file, layer), model);
      continue;
    }
    const auto network = networks.find(layer.number);
    if (network == networks.end()) throw NoRtneuralModel{};
    if (!network->second) continue;
    append_layer(
        {.name = layer.name(), .kind = "recurrent", .options = {{"network", *network->second}}},
        model);
  }
  check_layers(model->layers, model->outputs, find_spec_in(*model));
}

}  // namespace

std::string RtneuralLayer::place() const { return message("layers.", number); }

std::vector<RtneuralLayer> rtneural_layers(const ModelFile& file) {
  std::map<std::size_t, RtneuralLayer> found;
  for (const NamedValue& value : file.values()) {
    const std::optional<LayerKey> key = parse_layer_key(value.name);
    if (!key) continue;
    RtneuralLayer& layer = found[key->layer];
    const auto* const text = std::get_if<std::string>(&value.value);
    if (text && key->key == "type") layer.type = *text;
    if (text && key->key == "name") layer.given_name = *text;
    if (key->key == "activation") layer.activation = text ? *text : "what is no text";
  }
  for (const TensorInfo& info : file.tensors()) {
    const std::optional<LayerKey> key = parse_layer_key(info.name);
    if (!key) continue;
    std::vector<const TensorInfo*>& weights = found[key->layer].weights;
    // One that is no list of numbers ends them.
    if (key->key == message("weights.", weights.size())) weights.push_back(&info);
  }
  std::vector<RtneuralLayer> layers;
  for (auto& [number, layer] : found) {
    layer.number = number;
    layers.push_back(std::move(layer));
  }
  return layers;
}

void add_rtneural_layers(const ModelFile& file, const std::vector<RtneuralLayer>& given,
                         const RtneuralNetworks& networks, MappedModel* model) {
  std::string why;
  try {
    make_rtneural_layers(file, given, networks, model);
    return;
  } catch (const NoRtneuralModel& reason) {
    why = reason.why;
  } catch (const ArgumentError& error) {
    why = error.what();
  }
  model->layers.clear();
  model->outputs.clear();
  if (!why.empty()) model->notes.push_back("the model is read as its networks alone: " + why);
}

}  // namespace openrnn::mapping
