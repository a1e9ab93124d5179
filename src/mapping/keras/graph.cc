#include "mapping/keras/graph.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/calls.h"
#include "mapping/keras/config.h"
#include "mapping/keras/fields.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;

constexpr int kMaxModelDepth = 64;

/// Where a model is inside the file's.
struct ModelPlace {
  std::string path;
  /// Of the outermost model; empty in it.
  std::string group;
  int depth = 0;
};

using Outputs = std::vector<LayerOutput>;

class GraphWalk {
 public:
  GraphWalk(KerasGraph* out, int keras_major) : out_(*out), keras_major_(keras_major) {}

  // `given`: what a model inside another one is called on; null for the outermost one.
  Outputs walk_model(const json& model, const ModelPlace& place, const Outputs* given) {
    const json& config = config_of(model);
    const json* const layers = config.is_array() ? &config : member(config, "layers");
    if (!layers || !layers->is_array()) throw NoKerasLayer{"it has no layers"};
    if (place.depth == kMaxModelDepth) throw NoKerasLayer{"its models are nested too deeply"};
    return member(config, "input_layers") ? walk_functional(config, *layers, place, given)
                                          : walk_sequential(*layers, place, given);
  }

 private:
  std::string path_in(const ModelPlace& place, const json& node,
                      std::map<std::string, int>* numbers) const {
    const std::string snake = keras_snake_case(text_at(node, "class_name"));
    const int number = (*numbers)[snake]++;
    return place.path + "layers/" + snake + (number ? message("_", number) : "");
  }

  Outputs walk_sequential(const json& layers, const ModelPlace& place, const Outputs* given) {
    Outputs values = given ? *given : Outputs();
    std::map<std::string, int> numbers;
    for (const json& node : layers) {
      const std::string path = path_in(place, node, &numbers);
      if (text_at(node, "class_name") == "InputLayer") {
        if (!given) values = {add_input(name_of(node), config_of(node))};
        continue;
      }
      if (values.empty()) values = {add_first_input(node)};
      values.resize(1);  // a Sequential model hands on one
      values = add_node(node, path, place, {values});
    }
    if (values.empty()) throw NoKerasLayer{"it has no layers"};
    values.resize(1);
    return values;
  }

  // A Sequential model without an InputLayer: its first layer has the shape; that of an Embedding
  // is always the same.
  LayerOutput add_first_input(const json& node) {
    const json& config = config_of(node);
    json given = config;
    // Another one without a shape may get it from its network.
    if (keras_input_shape(config).empty() && text_at(node, "class_name") == "Embedding") {
      given = {{"batch_shape", {nullptr, nullptr}}};
    }
    return add_input(name_of(node) + "_input", given);
  }

  LayerOutput add_input(const std::string& name, const json& config) {
    KerasNode node;
    node.layer = {.name = free_name(name), .kind = "input"};
    node.layer.options["shape"] = keras_input_shape(config);
    out_.nodes.push_back(std::move(node));
    return {out_.nodes.back().layer.name, 0};
  }

  // Unlike all others: a layer inside a model may be called as one outside.
  std::string free_name(const std::string& wanted) {
    std::string name = wanted.empty() ? "layer" : wanted;
    // The numbers go on where the last one of that name ended.
    int& number = numbers_[name];
    const std::string stem = name;
    while (!names_.insert(name).second) name = message(stem, "_", ++number);
    return name;
  }

  Outputs add_node(const json& node, const std::string& path, const ModelPlace& place,
                   const KerasCall& call) {
    const std::string type = text_at(node, "class_name"), name = name_of(node);
    const std::string group = place.group.empty() ? name : place.group;
    try {
      if (member(config_of(node), "layers") || config_of(node).is_array()) {
        return walk_model(node, {path + "/", group, place.depth + 1}, &call.inputs);
      }
      KerasNode made{.layer = {.name = free_name(name), .kind = {}, .inputs = call.inputs},
                     .path = path,
                     .group = group,
                     .own_name = name,
                     .inner_name = {},
                     .nested = place.depth > 0};
      if (is_keras_recurrent(type)) {
        parse_keras_recurrent(node, keras_major_, &made, &out_.notes);
        // Keras 3 hands a mask to a layer that is called on one tensor, and not beside states.
        const bool unseen = keras_major_ >= 3 && call.inputs.size() > 1 && !call.has_mask;
        if (unseen && masks_.find(call.inputs[0])) made.layer.options["uses_mask"] = false;
      } else {
        parse_keras_leaf(node, keras_major_, &made, &out_.notes);
      }
      check_masked(node, made.layer);
      if (made.layer.kind.empty()) return call.inputs;
      if (!made.inner_name.empty()) made.path += "/layer";
      masks_.add(made.layer);
      out_.nodes.push_back(std::move(made));
    } catch (const NoKerasLayer& reason) {
      if (reason.why.starts_with("the layer ")) throw;
      throw NoKerasLayer{message("the layer '", excerpt(name_of(node)), "' ", reason.why)};
    }
    return outputs_of(out_.nodes.back().layer);
  }

  // Of what passes masks on here and not in Keras.
  void check_masked(const json& node, const MappedLayer& layer) const {
    if (layer.kind == "time_mean" || is_keras_recurrent(text_at(node, "class_name"))) return;
    const bool operation = is_keras_operation(node);
    const json* const inner = member(config_of(node), "layer");
    const bool softmax = text_at(inner ? *inner : node, "class_name") == "Softmax";
    for (const LayerOutput& from : layer.inputs) {
      if (!masks_.find(from) || !(operation || softmax)) continue;
      throw NoKerasLayer{message("is ", operation ? "an operation" : "a Softmax",
                                 " on values with a mask, which is not computed here")};
    }
  }

  // As many as it may have; which there are, its network tells.
  static Outputs outputs_of(const MappedLayer& layer) {
    const std::int64_t count = layer.kind == "recurrent" ? 6 : 1;
    Outputs outputs;
    for (std::int64_t i = 0; i < count; ++i) outputs.push_back({layer.name, i});
    return outputs;
  }

  Outputs walk_functional(const json& config, const json& layers, const ModelPlace& place,
                          const Outputs* given) {
    KerasMade made;
    const std::vector<const json*> inputs = places_in(*member(config, "input_layers"));
    if (given && given->size() < inputs.size()) {
      throw NoKerasLayer{"a model inside it has more inputs than it is given"};
    }
    std::map<std::string, const json*> by_name;
    for (const json& node : layers) by_name.emplace(name_of(node), &node);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto name = (*inputs[i])[0].get<std::string>();
      const auto node = by_name.find(name);
      if (node == by_name.end()) throw NoKerasLayer{"it has no layer '" + excerpt(name) + "'"};
      made.outputs[name] = {given ? (*given)[i] : add_input(name, config_of(*node->second))};
    }
    std::map<std::string, int> numbers;
    for (const json& node : layers) {
      const std::string path = path_in(place, node, &numbers);
      const std::string name = name_of(node);
      if (made.outputs.contains(name)) continue;
      if (is_keras_mask(node)) {
        made.masks[name] = read_keras_mask(node, made);
      } else {
        made.outputs[name] = add_node(node, path, place, read_keras_call(node, made, masks_));
      }
    }
    Outputs outputs;
    const json* const last = member(config, "output_layers");
    if (!last) throw NoKerasLayer{"it has no outputs"};
    for (const json* one : places_in(*last)) outputs.push_back(made.find(*one));
    return outputs;
  }

  // One place, or a list of them; Keras 3 has objects of these by structure.
  static std::vector<const json*> places_in(const json& value) {
    if (is_keras_place(value)) return {&value};
    std::vector<const json*> places;
    if (value.is_array() || value.is_object()) {
      for (const json& one : value) {
        if (!is_keras_place(one)) throw NoKerasLayer{"its inputs or outputs are nested"};
        places.push_back(&one);
      }
    }
    return places;
  }

  KerasGraph& out_;
  int keras_major_;
  KerasMasks masks_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> numbers_;
};

}  // namespace

KerasGraph parse_keras_graph(const json& model, int keras_major) {
  KerasGraph graph;
  try {
    graph.outputs = GraphWalk(&graph, keras_major).walk_model(model, {}, nullptr);
  } catch (const NoKerasLayer& reason) {
    return {.nodes = {}, .outputs = {}, .notes = {}, .fault = reason.why};
  }
  return graph;
}

}  // namespace openrnn::mapping
