// RTNeural has a layer's weights as Keras's get_weights() gives them.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/json/json.h"
#include "mapping/json/text.h"
#include "mapping/support/keras_arrays.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kRtneural = "a file of RTNeural";

const TensorInfo* weights_of(const ModelFile& file, std::size_t layer, std::size_t number) {
  const std::string name = message("layers.", layer, ".weights.", number);
  return file.contains(name) ? &file.info(name) : nullptr;
}

// The network that a layer's arrays make by their shapes; nothing if they make none.
std::optional<RnnSpec> layer_spec(RnnMode mode, std::span<const TensorInfo* const> arrays) {
  const Shape &kernel = arrays[0]->shape, &recurrent = arrays[1]->shape;
  if (kernel.size() != 2 || recurrent.size() != 2) return std::nullopt;
  RnnSpec spec{.mode = mode, .num_units = recurrent[0], .input_size = kernel[0]};
  spec.use_bias = arrays.size() == 3;
  const bool two = spec.use_bias && arrays[2]->shape.size() == 2;
  spec.single_bias = spec.use_bias && !two;
  // Keras has the recurrent bias apart where the reset gate comes after the product.
  if (mode == RnnMode::kGru && spec.use_bias) spec.reset_after = two;
  if (spec.num_units < 1 || spec.input_size < 1) return std::nullopt;
  try {
    spec.validate();
  } catch (const ArgumentError&) {
    return std::nullopt;
  }
  const std::vector<Shape> expected = keras_shapes(ParamsLayout(spec), {});
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i]->shape != expected[i]) return std::nullopt;
  }
  return spec;
}

// 3 of 'layers.3.type'.
std::optional<std::size_t> layer_with_type(std::string_view name) {
  constexpr std::string_view kLayers = "layers.", kType = ".type";
  if (!name.starts_with(kLayers) || !name.ends_with(kType)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  name.remove_suffix(kType.size());
  std::size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return layer;
}

/// One layer of the file.
struct RtneuralLayer {
  std::string name;  // of the network, where we wrote it
  RnnSpec spec;
  std::vector<Array> arrays;
  std::vector<std::string> tensors;
};

const std::string* text_of(const ModelFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.values(), name, &NamedValue::name);
  return found == file.values().end() ? nullptr : std::get_if<std::string>(&found->value);
}

std::optional<RtneuralLayer> read_layer(const ModelFile& file, std::size_t number, RnnMode mode,
                                        std::vector<std::string>* notes) {
  std::vector<const TensorInfo*> infos;
  while (const TensorInfo* const info = weights_of(file, number, infos.size())) {
    infos.push_back(info);
  }
  const std::string place = message("layers.", number);
  const std::optional<RnnSpec> spec =
      infos.size() == 2 || infos.size() == 3 ? layer_spec(mode, infos) : std::nullopt;
  if (!spec) {
    notes->push_back(message("no network was made from '", place, "': its ", infos.size(),
                             " arrays have not the shapes of a ", to_string(mode)));
    return std::nullopt;
  }
  const std::string* const name = text_of(file, place + ".name");
  RtneuralLayer layer{.name = name ? *name : place, .spec = *spec, .arrays = {}, .tensors = {}};
  for (const TensorInfo* info : infos) {
    layer.arrays.push_back(file.read(info->name));
    layer.tensors.push_back(info->name);
  }
  return layer;
}

// Layers one behind the other that have one name are one network.
bool continues(const RtneuralLayer& before, const RtneuralLayer& layer) {
  RnnSpec as_before = layer.spec;
  as_before.input_size = before.spec.input_size;
  return layer.name == before.name && as_before == before.spec &&
         layer.spec.input_size == before.spec.num_units;
}

MappedNetwork network_of(std::span<RtneuralLayer> layers) {
  RnnSpec spec = layers[0].spec;
  spec.num_layers = static_cast<std::int64_t>(layers.size());
  const ParamsLayout layout(spec);
  MappedNetwork network{
      .name = layers[0].name, .spec = spec, .params = Array(spec.dtype, {layout.size()})};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<ConstArrayView> views;
    for (const Array& array : layers[i].arrays) views.push_back(array.view());
    set_from_keras(layout, {.layer = static_cast<std::int64_t>(i)}, views, &network.params);
    network.tensors.insert(network.tensors.end(), layers[i].tensors.begin(),
                           layers[i].tensors.end());
  }
  return network;
}

std::string text_in_json(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

MappedModel map_rtneural(const ModelFile& file) {
  MappedModel model{.kind = file.kind(), .values = file.values()};
  std::vector<RtneuralLayer> layers;
  for (const NamedValue& value : file.values()) {
    const auto* const type = std::get_if<std::string>(&value.value);
    const std::optional<std::size_t> number = layer_with_type(value.name);
    if (!type || !number || (*type != "lstm" && *type != "gru")) continue;
    const RnnMode mode = *type == "lstm" ? RnnMode::kLstm : RnnMode::kGru;
    std::optional<RtneuralLayer> layer = read_layer(file, *number, mode, &model.notes);
    if (layer) layers.push_back(std::move(*layer));
  }
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t last = first + 1;
    while (last < layers.size() && continues(layers[last - 1], layers[last])) ++last;
    model.networks.push_back(network_of(std::span(layers).subspan(first, last - first)));
    first = last;
  }
  for (const TensorInfo& info : file.tensors()) {
    const bool taken = std::ranges::any_of(model.networks, [&](const MappedNetwork& network) {
      return std::ranges::find(network.tensors, info.name) != network.tensors.end();
    });
    if (!taken) model.not_understood.push_back(info.name);
  }
  return model;
}

void save_rtneural(const std::string& path, const MappedModel& model) {
  std::string layers;
  std::int64_t width = model.networks.at(0).spec.input_size;
  for (const MappedNetwork& given : model.networks) {
    const MappedNetwork network =
        json_network(given, kRtneural, given.spec.mode == RnnMode::kGru ? 2 : 1);
    const RnnSpec& spec = network.spec;
    if (spec.input_size != width || given.initial_h || given.initial_c) {
      throw UnsupportedError(message("[save_networks] ", network_called(given.name), " has ",
                                     spec.input_size != width
                                         ? "another input size than what is in front of it gives"
                                         : "states to begin with",
                                     ", which ", kRtneural, " cannot hold"));
    }
    const ParamsLayout layout(spec);
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      layers +=
          message(layers.empty() ? "" : ",", "\n  {\"type\": \"", spec.is_lstm() ? "lstm" : "gru",
                  "\", \"name\": ", text_in_json(network.name),
                  ", \"activation\": \"tanh\", \"shape\": [null, null, ", spec.num_units,
                  "],\n   \"weights\": [");
      const std::vector<Array> arrays =
          keras_arrays(layout, {.layer = layer}, network.params.view());
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (i > 0) layers += ",\n    ";
        append_lists(arrays[i], kRtneural, &layers);
      }
      layers += "]}";
    }
    width = spec.num_units;
  }
  write_file_atomically(path,
                        message("{\"in_shape\": [null, null, ", model.networks[0].spec.input_size,
                                "],\n \"layers\": [", layers, "]}\n"));
}

}  // namespace openrnn::mapping
