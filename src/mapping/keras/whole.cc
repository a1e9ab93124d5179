#include "mapping/keras/whole.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/cells.h"
#include "mapping/keras/fields.h"
#include "mapping/keras/graph.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;

std::string last_part(std::string_view name) {
  name = name.substr(0, name.rfind(':'));
  return std::string(name.substr(name.rfind('/') + 1));
}

// The tensors of one layer, in its order.
std::vector<const TensorInfo*> tensors_of(const KerasWhole& whole, const KerasNode& node,
                                          std::size_t count) {
  std::vector<const TensorInfo*> found;
  if (whole.file.kind() != FileKind::kKerasArchive) {
    for (const auto& [name, info] : keras_group_tensors(whole.file, whole.values, node.group)) {
      const std::vector<std::string> parts = split_path(name);
      // In a model inside, which has one group: 'inner/dense_2/kernel'.
      const bool is_its = !node.nested || std::ranges::any_of(parts, [&](const auto& part) {
        return part == node.own_name || (!node.inner_name.empty() && part == node.inner_name);
      });
      if (is_its) found.push_back(info);
    }
    return found;
  }
  constexpr std::string_view kLayers = "layers/";
  const std::string rest = node.path.substr(kLayers.size());
  for (const std::string& path : {node.path, "_layer_checkpoint_dependencies/" + rest}) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = message(path, "/vars/", i);
      if (whole.file.contains(name)) found.push_back(&whole.file.info(name));
    }
    if (!found.empty()) break;
  }
  return found;
}

DType dtype_of(const TensorInfo& info) {
  for (const DType one : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (info.dtype == dtype_name(one)) return one;
  }
  throw NoKerasLayer{
      message("'", excerpt(info.name), "' is ", excerpt(info.dtype), ", expected floating point")};
}

void read_weights(const KerasWhole& whole, const KerasNode& node, MappedLayer* layer) {
  std::vector<std::string> names;
  if (layer->kind == "embedding") names = {"embeddings"};
  if (layer->kind == "dense") names = {"kernel"};
  if (layer->kind == "dense" && layer_option_as<bool>(*layer, "use_bias")) names.push_back("bias");
  if (names.empty()) return;
  const std::vector<const TensorInfo*> found = tensors_of(whole, node, names.size());
  if (found.size() != names.size()) {
    throw NoKerasLayer{message("the layer '", excerpt(layer->name), "' has ", found.size(),
                               " tensors in the file, expected ", names.size())};
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorInfo& info = *found[i];
    const std::string given = last_part(info.name);
    const bool named = given == "kernel" || given == "bias" || given == "embeddings";
    if (named && given != names[i]) {
      throw NoKerasLayer{message("the layer '", excerpt(layer->name), "' has '", excerpt(info.name),
                                 "', expected its ", names[i])};
    }
    dtype_of(info);
    layer->weights.push_back({names[i], whole.file.read(info.name)});
    layer->tensors.push_back(info.name);
  }
  if (layer->kind == "embedding") {
    layer->options["dtype"] = std::string(dtype_name(layer->weights[0].values.dtype()));
  }
}

// The network of a recurrent layer; of stacked cells that differ one behind the other.
std::vector<MappedLayer> with_networks(const KerasWhole& whole, const KerasNode& node) {
  const auto at = whole.config.by_path.find(node.path);
  const auto number = static_cast<std::ptrdiff_t>(
      at == whole.config.by_path.end() ? whole.config.layers.size() : at->second);
  const auto found = whole.networks.find(number);
  if (found == whole.networks.end()) {
    throw NoKerasLayer{message("no network was made from '", excerpt(node.layer.name), "'")};
  }
  std::vector<MappedLayer> layers(found->second.size(), node.layer);
  const std::string name = node.layer.name;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].options["network"] = found->second[i];
    if (i + 1 < layers.size()) {
      layers[i].name = found->second[i];
      layers[i].options["return_sequences"] = true;
    }
    if (i > 0) layers[i].inputs = {{layers[i - 1].name, 0}};
  }
  const bool plain = node.layer.inputs.size() == 1 &&
                     !layer_option_as<bool>(node.layer, "reverse") &&
                     !layer_option_as<bool>(node.layer, "return_state");
  if (layers.size() > 1 && !plain) {
    throw NoKerasLayer{message("the layer '", excerpt(name),
                               "' of cells that differ has states "
                               "or go_backwards, which is not computed here")};
  }
  return layers;
}

// Integers where an Embedding reads them, else the dtype of the weights: Keras casts to both.
void set_input_types(const MappedModel& model, std::vector<MappedLayer>* layers) {
  DType floating = DType::kFloat32;
  for (const MappedNetwork& network : model.networks) floating = network.spec.dtype;
  for (const MappedLayer& layer : *layers) {
    if (!layer.weights.empty()) floating = layer.weights[0].values.dtype();
  }
  std::map<std::string, bool> integers;
  for (const MappedLayer& layer : *layers) {
    for (const LayerOutput& from : layer.inputs) integers[from.layer] |= layer.kind == "embedding";
  }
  for (MappedLayer& layer : *layers) {
    if (layer.kind != "input") continue;
    layer.options["dtype"] =
        std::string(dtype_name(integers[layer.name] ? DType::kInt32 : floating));
  }
}

// Older layers say no shape of the sequence.
void set_input_shapes(const MappedModel& model, std::vector<MappedLayer>* layers) {
  const FindSpec find_spec = find_spec_in(model);
  std::map<std::string, MappedLayer*> inputs;
  for (MappedLayer& layer : *layers) {
    if (layer.kind == "input") inputs[layer.name] = &layer;
    if (layer.kind != "recurrent") continue;
    const auto from = inputs.find(layer.inputs.at(0).layer);
    if (from == inputs.end()) continue;
    const RnnSpec* const spec = find_spec(layer_option_as<std::string>(layer, "network"));
    auto& shape = std::get<std::vector<std::int64_t>>(from->second->options["shape"]);
    if (spec && shape.empty()) shape = {-1, -1, spec->input_size};
  }
}

void make_layers(const KerasWhole& whole, const KerasGraph& graph, MappedModel* model) {
  std::vector<MappedLayer> layers;
  for (const KerasNode& node : graph.nodes) {
    if (node.layer.kind == "recurrent") {
      for (MappedLayer& layer : with_networks(whole, node)) layers.push_back(std::move(layer));
      continue;
    }
    layers.push_back(node.layer);
    read_weights(whole, node, &layers.back());
  }
  set_input_types(*model, &layers);
  set_input_shapes(*model, &layers);
  std::stable_partition(layers.begin(), layers.end(),
                        [](const MappedLayer& one) { return one.kind == "input"; });
  check_layers(layers, graph.outputs, find_spec_in(*model));
  model->layers = std::move(layers);
  model->outputs = graph.outputs;
}

}  // namespace

void add_keras_layers(const KerasWhole& whole, const std::string& text, MappedModel* model) {
  const json config = json::parse(text, nullptr, false);
  const KerasGraph graph = parse_keras_graph(config, whole.keras_major);
  std::string fault = graph.fault;
  if (fault.empty()) {
    try {
      make_layers(whole, graph, model);
    } catch (const NoKerasLayer& reason) {
      fault = reason.why;
    } catch (const ArgumentError& error) {
      fault = error.what();
    }
  }
  if (!fault.empty()) {
    model->notes.push_back("the model is read as its networks alone: " + fault);
    return;
  }
  model->notes.insert(model->notes.end(), graph.notes.begin(), graph.notes.end());
  if (text.find("\"mixed_") != text.npos) {
    model->notes.push_back(
        "the model is computed in the dtype of its weights, in Keras by a mixed "
        "policy");
  }
}

// Bidirectional, RNN over cells, or a layer of its own.
void parse_keras_recurrent(const json& node, int keras_major, KerasNode* out,
                           std::vector<std::string>* notes) {
  const bool both = text_at(node, "class_name") == "Bidirectional";
  const json* const inner = both ? member(config_of(node), "layer") : &node;
  if (!inner) throw NoKerasLayer{"has no layer"};
  const json& config = config_of(*inner);
  MappedLayer& layer = out->layer;
  layer.kind = "recurrent";
  const bool sequences = flag_at(config, "return_sequences", false);
  layer.options["return_sequences"] = sequences;
  layer.options["return_state"] = flag_at(config, "return_state", false);
  layer.options["stateful"] = flag_at(config, "stateful", false);
  // Of both directions Keras 3 sets it, whatever the file says.
  const bool zeros = flag_at(config, "zero_output_for_mask", false);
  layer.options["zero_output_for_mask"] = both && keras_major >= 3 ? sequences : zeros;
  if (!both) layer.options["reverse"] = flag_at(config, "go_backwards", false);
  const json* const merge = member(config_of(node), "merge_mode");
  if (both && merge) {
    layer.options["merge"] = merge->is_string() ? merge->get<std::string>() : std::string("none");
  }
  if (!flag_at(config_of(node), "trainable", true)) layer.options["trainable"] = false;
  const json* const cell = member(config, "cell");
  for (const char* rate : {"dropout", "recurrent_dropout", "dropout_W", "dropout_U"}) {
    if (number_at(cell ? config_of(*cell) : config, rate, 0.0) == 0.0) continue;
    notes->push_back(message("the layer '", excerpt(layer.name), "' has ", rate,
                             " in Keras's training, and none here"));
  }
}

}  // namespace openrnn::mapping
