// Networks of several layers, which Keras has as several.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/message.h"
#include "mapping/keras/keras.h"

namespace openrnn::mapping {

namespace {

// The same region of the layer's own network and of the joined one.
void copy_layer(const MappedNetwork& from, std::int64_t layer, const ParamsLayout& to,
                Array* params) {
  const std::size_t width = dtype_size(params->dtype());
  const ParamsLayout layout(from.spec);
  const auto copy = [&](std::span<const ParamRegion> sources,
                        std::span<const ParamRegion> targets) {
    auto target = std::find_if(targets.begin(), targets.end(),
                               [&](const ParamRegion& one) { return one.layer == layer; });
    for (const ParamRegion& source : sources) {
      std::memcpy(static_cast<std::byte*>(params->data()) +
                      static_cast<std::size_t>(target->offset) * width,
                  static_cast<const std::byte*>(from.params.data()) +
                      static_cast<std::size_t>(source.offset) * width,
                  static_cast<std::size_t>(source.size()) * width);
      ++target;
    }
  };
  // Of one layer the regions are in the same order in both.
  copy(layout.weights(), to.weights());
  copy(layout.biases(), to.biases());
}

// Of layers that are not needed any more.
std::optional<MappedNetwork> joined(const std::string& name,
                                    const std::vector<MappedNetwork*>& layers) {
  if (layers.empty()) return std::nullopt;
  RnnSpec spec = layers[0]->spec;
  for (const MappedNetwork* layer : layers) {
    RnnSpec same = layers[0]->spec;
    if (layer != layers[0]) same.input_size = same.output_size();
    if (layer->spec.num_layers != 1 || layer->spec != same) return std::nullopt;
  }
  spec.num_layers = static_cast<std::int64_t>(layers.size());
  const ParamsLayout layout(spec);
  MappedNetwork network{.name = name, .spec = spec, .params = Array(spec.dtype, {layout.size()})};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    copy_layer(*layers[i], static_cast<std::int64_t>(i), layout, &network.params);
    network.tensors.insert(network.tensors.end(), layers[i]->tensors.begin(),
                           layers[i]->tensors.end());
    // Or a large network would be in memory twice.
    layers[i]->params = Array();
  }
  return network;
}

// The layers of the whole model that are one network become one; false where they are not one
// behind the other, with nothing in between.
bool join_whole(const std::string& name, const std::vector<std::string>& parts,
                std::vector<MappedLayer>* layers) {
  std::vector<std::size_t> found;
  for (const std::string& part : parts) {
    for (std::size_t i = 0; i < layers->size(); ++i) {
      const MappedLayer& layer = (*layers)[i];
      if (layer.kind != "recurrent" || layer_option_as<std::string>(layer, "network") != part) {
        continue;
      }
      found.push_back(i);
    }
  }
  if (found.size() != parts.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const MappedLayer& layer = (*layers)[found[i]];
    const bool last = i + 1 == found.size();
    const bool follows = i == 0 || (layer.inputs.size() == 1 &&
                                    layer.inputs[0].layer == (*layers)[found[i - 1]].name);
    const bool hands_on = last || (layer_option_as<bool>(layer, "return_sequences") &&
                                   layer_option_as<std::string>(layer, "merge") == "concat");
    const bool plain = parts.size() == 1 ||
                       (!layer_option_as<bool>(layer, "reverse") &&
                        !layer_option_as<bool>(layer, "return_state") && layer.inputs.size() == 1);
    if (!follows || !hands_on || !plain) return false;
  }
  MappedLayer& last = (*layers)[found.back()];
  last.inputs = (*layers)[found.front()].inputs;
  last.options["network"] = name;
  found.pop_back();
  std::ranges::sort(found, std::greater<>());
  for (const std::size_t at : found) layers->erase(layers->begin() + static_cast<long>(at));
  return true;
}

}  // namespace

void join_keras_layers(const std::string& path, const std::string& text, MappedModel* model) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  const auto is_list = [](const auto& item) {
    return item.is_array() &&
           std::all_of(item.begin(), item.end(), [](const auto& one) { return one.is_string(); });
  };
  if (!json.is_object() || !std::all_of(json.begin(), json.end(), is_list)) {
    throw FormatError(path, 0, message(kKerasNetworks, " is no object of lists, expected one"));
  }
  std::unordered_map<std::string, MappedNetwork*> by_name;
  for (MappedNetwork& network : model->networks) by_name.emplace(network.name, &network);
  std::vector<MappedNetwork> networks;
  for (const auto& [name, list] : json.items()) {
    std::vector<MappedNetwork*> layers;
    for (const auto& one : list) {
      // Each is part of one network.
      const auto found = by_name.find(one.template get<std::string>());
      if (found == by_name.end()) break;
      layers.push_back(found->second);
      by_name.erase(found);
    }
    std::optional<MappedNetwork> network =
        layers.size() == list.size() ? joined(name, layers) : std::nullopt;
    if (!network) {
      throw FormatError(path, 0, message(kKerasNetworks, " has layers that make no network"));
    }
    networks.push_back(std::move(*network));
    const auto parts = list.template get<std::vector<std::string>>();
    if (!join_whole(name, parts, &model->layers)) model->layers.clear();
  }
  for (MappedNetwork& network : model->networks) {
    if (by_name.contains(network.name)) networks.push_back(std::move(network));
  }
  model->networks = std::move(networks);
}

}  // namespace openrnn::mapping
