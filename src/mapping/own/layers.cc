#include "mapping/own/layers.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;

std::uint32_t checksum_of(const Array& values) {
  return crc32c({static_cast<const char*>(values.data()), values.size_bytes()});
}

json to_json(std::monostate) { return nullptr; }
template <class T>
json to_json(const T& value) {
  return value;
}

json place_to_json(const LayerOutput& output) { return json::array({output.layer, output.index}); }

// 'layers/dense/kernel', 'layers/dense/slots/m/kernel'.
std::string tensor_name(const std::string& layer, const std::string& part) {
  return "layers/" + layer + "/" + part;
}

json layer_to_json(const MappedLayer& layer, std::vector<NamedView>* views) {
  json inputs = json::array(), options = json::object(), checksums = json::object();
  for (const LayerOutput& input : layer.inputs) inputs.push_back(place_to_json(input));
  for (const auto& [name, value] : layer.options) {
    options[name] = std::visit([](const auto& held) { return to_json(held); }, value);
  }
  const auto add = [&](const std::string& part, const Array& values) {
    checksums[part] = checksum_of(values);
    views->push_back({tensor_name(layer.name, part), values.view()});
  };
  for (const LayerWeight& weight : layer.weights) {
    add(weight.name, weight.values);
    for (const auto& [slot, values] : weight.slots) {
      add("slots/" + slot + "/" + weight.name, values);
    }
  }
  return {{"name", layer.name},
          {"kind", layer.kind},
          {"inputs", std::move(inputs)},
          {"options", std::move(options)},
          {"crc32c", std::move(checksums)}};
}

/// A text that is being read.
class LayersReader {
 public:
  LayersReader(const ModelFile& file, MappedModel* model) : file_(file), model_(*model) {}

  void read(const json& text) {
    for (const json& layer : list_at(text, "layers")) model_.layers.push_back(read_layer(layer));
    for (const json& output : list_at(text, "outputs")) {
      model_.outputs.push_back(read_place(output));
    }
    try {
      check_layers(model_.layers, model_.outputs, find_spec_in(model_));
    } catch (const ArgumentError& error) {
      fail(error.what());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(file_.path(), 0, message(kLayersKey, ": ", what));
  }

  const json& member_of(const json& object, const char* key) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) {
      fail(message("no '", key, "' in ", excerpt(object.dump(-1, ' ', true).substr(0, 80)),
                   ", expected it"));
    }
    return *found;
  }
  const json& list_at(const json& object, const char* key) const {
    const json& value = member_of(object, key);
    if (!value.is_array()) fail(message("'", key, "' is no list, expected one"));
    return value;
  }
  std::string text_at(const json& object, const char* key) const {
    const json& value = member_of(object, key);
    if (!value.is_string()) fail(message("'", key, "' is no string, expected one"));
    return value.get<std::string>();
  }

  LayerOutput read_place(const json& value) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_string() ||
        !value[1].is_number_integer()) {
      fail("an input or output is no [NAME, NUMBER], expected one");
    }
    return {value[0].get<std::string>(), value[1].get<std::int64_t>()};
  }

  // Of the type of the default.
  PlainValue read_value(const std::string& name, const json& value, const PlainValue& like) const {
    return std::visit(
        [&]<class T>(const T&) -> PlainValue {
          if constexpr (std::is_same_v<T, std::monostate>) {
            return {};
          } else {
            try {
              const bool wrong = std::is_same_v<T, std::int64_t> && !value.is_number_integer();
              if (!wrong) return value.get<T>();
            } catch (const json::exception&) {  // said below
            }
            fail(message("the option '", excerpt(name), "' is of another type than its default"));
          }
        },
        like);
  }

  MappedLayer read_layer(const json& value) const {
    MappedLayer layer{.name = text_at(value, "name"), .kind = text_at(value, "kind")};
    for (const json& input : list_at(value, "inputs")) layer.inputs.push_back(read_place(input));
    const json &options = member_of(value, "options"), &checksums = member_of(value, "crc32c");
    if (!options.is_object() || !checksums.is_object()) {
      fail("options and crc32c of a layer are no objects, expected two");
    }
    for (const auto& [name, option] : options.items()) {
      try {
        const PlainValue like = layer_option({.name = layer.name, .kind = layer.kind}, name);
        layer.options[name] = read_value(name, option, like);
      } catch (const ArgumentError& error) {
        fail(error.what());
      }
    }
    read_weights(checksums, &layer);
    return layer;
  }

  // The names of the weights are in the order of the kind, which JSON does not keep.
  void read_weights(const json& checksums, MappedLayer* layer) const {
    for (const char* name : {"embeddings", "kernel", "bias"}) {
      if (!checksums.contains(name)) continue;
      layer->weights.push_back({name, read_tensor(*layer, name, checksums[name])});
      layer->tensors.push_back(tensor_name(layer->name, name));
    }
    std::size_t read = layer->weights.size();
    for (const auto& [part, checksum] : checksums.items()) {
      if (!part.starts_with("slots/")) continue;
      const std::size_t slash = part.rfind('/');
      const std::string slot = part.substr(6, slash > 6 ? slash - 6 : 0);
      for (LayerWeight& weight : layer->weights) {
        if (slot.empty() || weight.name != part.substr(slash + 1)) continue;
        weight.slots.emplace(slot, read_tensor(*layer, part, checksum));
        layer->tensors.push_back(tensor_name(layer->name, part));
        ++read;
      }
    }
    if (read != checksums.size()) {
      fail(message("the layer '", excerpt(layer->name), "' has tensors of other names than ",
                   "embeddings, kernel, bias and slots/SLOT/NAME"));
    }
  }

  Array read_tensor(const MappedLayer& layer, const std::string& part, const json& stored) const {
    const std::string name = tensor_name(layer.name, part);
    if (!file_.contains(name)) fail(message("tensor '", excerpt(name), "' is not there"));
    Array values = file_.read(name);
    if (!stored.is_number_unsigned() || stored.get<std::uint64_t>() != checksum_of(values)) {
      fail(message("tensor '", excerpt(name), "' has the checksum ", checksum_of(values),
                   ", expected ", excerpt(stored.dump(-1, ' ', true))));
    }
    return values;
  }

  const ModelFile& file_;
  MappedModel& model_;
};

}  // namespace

std::string text_checksum(const std::string& text) {
  std::array<char, 16> sum{};
  std::snprintf(sum.data(), sum.size(), "%08x", crc32c(text));
  return sum.data();
}

std::string layers_to_json(const MappedModel& model, std::vector<NamedView>* views) {
  json layers = json::array(), outputs = json::array();
  for (const MappedLayer& layer : model.layers) layers.push_back(layer_to_json(layer, views));
  for (const LayerOutput& output : model.outputs) outputs.push_back(place_to_json(output));
  return json{{"layers", std::move(layers)}, {"outputs", std::move(outputs)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

void layers_from_json(const ModelFile& file, const std::string& text, MappedModel* model) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) {
    throw FormatError(file.path(), 0, message(kLayersKey, " is no JSON, expected JSON"));
  }
  LayersReader(file, model).read(parsed);
}

}  // namespace openrnn::mapping
