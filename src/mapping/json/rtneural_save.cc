// Writes RTNeural's JSON, layer by layer.
#include <nlohmann/json.hpp>
#include <set>

#include "base/message.h"
#include "mapping/json/chain.h"
#include "mapping/json/json.h"
#include "mapping/json/text.h"
#include "mapping/support/chain.h"
#include "mapping/support/keras_arrays.h"
#include "mapping/support/options.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kRtneural = "a file of RTNeural";

std::string text_in_json(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// RTNeural's name of a function; elu has the factor 1 there.
std::string rtneural_function(const MappedLayer& layer) {
  const auto& text = layer_option_as<std::string>(layer, "activation");
  const LayerFunction function = parse_layer_function(text);
  if (function.name == "linear") return "";
  for (const char* same : {"tanh", "relu", "sigmoid", "softmax"}) {
    if (function.name == same) return function.name;
  }
  if (function.name == "elu" && function.alpha == 1.0) return "elu";
  refuse_held(layer, "the activation " + text, kRtneural);
}

/// The text of a file that is being written.
class RtneuralWriter {
 public:
  explicit RtneuralWriter(std::int64_t width) : first_width_(width), width_(width) {}

  void add_network(const MappedNetwork& given) {
    const MappedNetwork network =
        json_network(given, kRtneural, given.spec.mode == RnnMode::kGru ? 2 : 1);
    const RnnSpec& spec = network.spec;
    if (spec.input_size != width_ || given.initial_h || given.initial_c) {
      throw UnsupportedError(message("[save_networks] ", network_called(given.name), " has ",
                                     spec.input_size != width_
                                         ? "another input size than what is in front of it gives"
                                         : "states to begin with",
                                     ", which ", kRtneural, " cannot hold"));
    }
    const ParamsLayout layout(spec);
    for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
      add(spec.is_lstm() ? "lstm" : "gru", &network.name, "tanh", spec.num_units,
          keras_arrays(layout, {.layer = layer}, network.params.view()));
    }
    names_.insert(network.name);
  }

  /// Dense layers and activations.
  void add_layer(const MappedLayer& layer, std::int64_t width) {
    const std::string function = rtneural_function(layer);
    std::vector<Array> weights;
    if (layer.kind == "dense") {
      weights.emplace_back(layer_weight(layer, "kernel")->view());
      // RTNeural reads a bias of each dense layer.
      const Array* const bias = layer_weight(layer, "bias");
      weights.push_back(bias ? Array(bias->view()) : Array(DType::kFloat32, {width}));
    }
    // A name that is there twice would join what is not one network; there is another without it.
    const bool is_new = names_.insert(layer.name).second;
    add(layer.kind, is_new ? &layer.name : nullptr, function, width, weights);
  }

  std::string text() const {
    return message("{\"in_shape\": [null, null, ", first_width_, "],\n \"layers\": [", layers_,
                   "]}\n");
  }

 private:
  void add(const std::string& type, const std::string* name, const std::string& activation,
           std::int64_t width, const std::vector<Array>& weights) {
    layers_ +=
        message(layers_.empty() ? "" : ",", "\n  {\"type\": \"", type, "\", ",
                name ? message("\"name\": ", text_in_json(*name), ", ") : "", "\"activation\": \"",
                activation, "\", \"shape\": [null, null, ", width, "],\n   \"weights\": [");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i > 0) layers_ += ",\n    ";
      append_lists(weights[i], kRtneural, &layers_);
    }
    layers_ += "]}";
    width_ = width;
  }

  std::int64_t first_width_, width_;
  std::string layers_;
  std::set<std::string> names_;
};

}  // namespace

void save_rtneural(const std::string& path, const MappedModel& model) {
  if (model.layers.empty()) {
    RtneuralWriter writer(model.networks.at(0).spec.input_size);
    for (const MappedNetwork& network : model.networks) writer.add_network(network);
    write_file_atomically(path, writer.text());
    return;
  }
  const std::vector<JsonLink> chain = json_chain(model, kRtneural);
  RtneuralWriter writer(
      layer_option_as<std::vector<std::int64_t>>(model.layers[0], "shape").back());
  for (const JsonLink& link : chain) {
    if (link.network) {
      writer.add_network(*link.network);
    } else {
      writer.add_layer(*link.layer, link.width);
    }
  }
  write_file_atomically(path, writer.text());
}

}  // namespace openrnn::mapping
