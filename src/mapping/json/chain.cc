#include "mapping/json/chain.h"

#include <algorithm>
#include <set>

#include "base/message.h"
#include "mapping/support/chain.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

void begin_chain(std::int64_t width, std::string name, MappedModel* model) {
  model->layers = {{.name = std::move(name),
                    .kind = "input",
                    .options = {{"shape", std::vector<std::int64_t>{-1, -1, width}}}}};
}

void append_layer(MappedLayer layer, MappedModel* model) {
  layer.inputs = {{model->layers.back().name, 0}};
  model->outputs = {{layer.name, 0}};
  model->layers.push_back(std::move(layer));
}

MappedLayer dense_layer(std::string name, Array kernel, std::optional<Array> bias) {
  MappedLayer layer{
      .name = std::move(name), .kind = "dense", .options = {{"units", kernel.shape().at(1)}}};
  layer.weights.push_back({"kernel", std::move(kernel)});
  if (bias) {
    layer.weights.push_back({"bias", std::move(*bias)});
  } else {
    layer.options["use_bias"] = false;
  }
  return layer;
}

const Array* layer_weight(const MappedLayer& layer, std::string_view name) {
  const auto found = std::ranges::find(layer.weights, name, &LayerWeight::name);
  return found == layer.weights.end() ? nullptr : &found->values;
}

namespace {

void require_plain_call(const MappedLayer& layer, std::string_view format) {
  if (!layer_option_as<bool>(layer, "return_sequences")) {
    refuse_held(layer, "return_sequences false", format);
  }
  for (const char* option : {"return_state", "reverse"}) {
    if (layer_option_as<bool>(layer, option)) refuse_held(layer, message(option, " true"), format);
  }
}

// Networks that no layer has would be lost.
void require_used(const MappedModel& model, const std::set<std::string_view>& used,
                  std::string_view format) {
  for (const MappedNetwork& network : model.networks) {
    if (used.contains(network.name)) continue;
    throw UnsupportedError(message("[save_networks] ", network_called(network.name),
                                   " is of no layer of the model, which ", format, " cannot hold"));
  }
}

}  // namespace

std::vector<JsonLink> json_chain(const MappedModel& model, std::string_view format) {
  require_chain(model, format);
  const auto values = check_layers(model.layers, model.outputs, find_spec_in(model));
  std::set<std::string_view> used;
  std::vector<JsonLink> links;
  for (const MappedLayer& layer : model.layers) {
    const LayerValue& value = values.at(layer.name)[0];
    if (layer.kind == "input") continue;
    JsonLink link{.layer = &layer, .width = value.shape.back()};
    if (layer.kind == "recurrent") {
      const auto& name = layer_option_as<std::string>(layer, "network");
      link.network = &*std::ranges::find(model.networks, name, &MappedNetwork::name);
      if (!used.insert(name).second) refuse_held(layer, "the network of another layer", format);
      require_plain_call(layer, format);
    } else if (layer.kind != "dense" && layer.kind != "activation") {
      refuse_held(layer, "the kind " + layer.kind, format);
    }
    if (value.shape.size() != 3 || value.shape.back() < 1) {
      refuse_held(layer, "an output of shape " + to_string(value.shape), format);
    }
    if (value.dtype != DType::kFloat32) {
      refuse_held(layer, "the dtype " + std::string(dtype_name(value.dtype)), format);
    }
    links.push_back(link);
  }
  require_used(model, used, format);
  return links;
}

}  // namespace openrnn::mapping
