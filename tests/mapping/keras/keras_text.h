// Files of Keras's old form, written from a model's JSON and the tensors of its layers.
#pragma once

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"

namespace openrnn {

/// The tensors of one layer in its order, 'kernel' and so on in front of their values.
using LayerTensors = std::vector<std::pair<std::string, Array>>;

struct KerasText {
  std::string version = "3.0.0";
  /// Of the model; empty: the file has weights alone.
  std::string config = {};
  std::vector<std::pair<std::string, LayerTensors>> layers = {};
  std::vector<std::pair<std::string, Array>> optimizer = {};
  MappingHints hints = {};
  /// Besides those of the model.
  std::vector<NamedValue> values = {};
};

inline MappedModel loaded(const KerasText& text) {
  const formats::TempFolder folder;
  std::vector<NamedView> views;
  std::vector<std::string> names;
  std::vector<NamedValue> values{{"keras_version", text.version}};
  if (!text.config.empty()) values.push_back({"model_config", text.config});
  const std::string root = text.config.empty() ? "" : "model_weights/";
  for (const auto& [layer, tensors] : text.layers) {
    names.push_back(layer);
    std::vector<std::string> of_layer;
    for (const auto& [name, array] : tensors) {
      of_layer.push_back(layer + "/" + name);
      views.push_back({message(root, layer, "/", of_layer.back()), array.view()});
    }
    values.push_back({message(root, layer, "/weight_names"), of_layer});
  }
  values.push_back({root + "layer_names", names});
  names.clear();
  for (const auto& [name, array] : text.optimizer) {
    names.push_back(name);
    views.push_back({"optimizer_weights/" + name, array.view()});
  }
  if (!names.empty()) values.push_back({"optimizer_weights/weight_names", names});
  values.insert(values.end(), text.values.begin(), text.values.end());
  write_hdf5(folder / "m.h5", views, values);
  return load_networks(folder / "m.h5", text.hints);
}

inline Array array_of(Shape shape, std::uint64_t seed = 1) {
  return values_of(DType::kFloat32, std::move(shape), seed);
}

inline LayerTensors cell_of(std::int64_t gates, Shape bias, const std::string& folder = "") {
  const std::int64_t width = 3 * gates;
  LayerTensors tensors{{folder + "kernel", array_of({3, width}, 1)},
                       {folder + "recurrent_kernel", array_of({3, width}, 2)}};
  if (!bias.empty()) tensors.emplace_back(folder + "bias", array_of(std::move(bias), 3));
  return tensors;
}

inline std::string layer_text(const std::string& type, const std::string& name,
                              const std::string& options = "") {
  return message(R"({"class_name": ")", type, R"(", "config": {"name": ")", name, "\"",
                 options.empty() ? "" : ", ", options, "}}");
}

inline std::string sequential(const std::string& layers) {
  return message(R"({"class_name": "Sequential", "config": {"layers": [)",
                 layer_text("InputLayer", "x", R"("batch_shape": [null, null, 3])"), ", ", layers,
                 "]}}");
}

/// A model of a layer behind an LSTM 'l' of 3 units on 3 inputs that returns its steps.
inline KerasText behind_lstm(const std::string& layer) {
  const std::string options = R"("return_sequences": true, "recurrent_activation": "sigmoid")";
  return {.config = sequential(layer_text("LSTM", "l", options) + ", " + layer),
          .layers = {{"l", cell_of(4, {12})}}};
}

/// A flag as 'yes' or 'no', and a number that is no integer with an 'r' behind it.
inline std::string shown(const PlainValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return message(*whole);
  if (const auto* const real = std::get_if<double>(&value)) return message(*real, "r");
  if (const auto* const sizes = std::get_if<std::vector<std::int64_t>>(&value)) {
    return to_string(*sizes);
  }
  return "?";
}

inline std::string network_or_notes(const MappedModel& model) {
  std::string text;
  for (const MappedNetwork& network : model.networks) text += describe(network.spec);
  for (const std::string& note : model.notes) text += "; " + note;
  return text;
}

}  // namespace openrnn
