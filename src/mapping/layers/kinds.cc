#include "mapping/layers/kinds.h"

#include <unordered_map>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/layers/infer.h"
#include "openrnn/mapping.h"

namespace openrnn {

namespace mapping {

namespace {

// As many as a graph may name one behind the other; what is given is bounded by the file anyway.
constexpr std::size_t kManyInputs = 1 << 20;

std::vector<LayerKindFact> make_kinds() {
  using Sizes = std::vector<std::int64_t>;
  const LayerOptionFact trainable{"trainable", true};
  return {
      {"input", 0, 0, {{"shape", Sizes()}, {"dtype", std::string("float32")}}, infer_input},
      {"embedding",
       1,
       1,
       {{"vocabulary", std::int64_t{0}},
        {"dim", std::int64_t{0}},
        {"mask_zero", false},
        {"dtype", std::string("float32")},
        trainable},
       infer_embedding},
      {"masking", 1, 1, {{"mask_value", 0.0}}, infer_masking},
      // Four states at most: h and c of two directions.
      {"recurrent",
       1,
       5,
       {{"network", std::string()},
        {"return_sequences", true},
        {"return_state", false},
        {"merge", std::string("concat")},
        {"reverse", false},
        {"stateful", false},
        {"zero_output_for_mask", false},
        {"uses_mask", true},
        {"initial_h", std::vector<double>()},
        {"initial_c", std::vector<double>()},
        trainable},
       infer_recurrent},
      {"dense",
       1,
       1,
       {{"units", std::int64_t{0}},
        {"activation", std::string("linear")},
        {"use_bias", true},
        trainable},
       infer_dense},
      {"activation", 1, 1, {{"activation", std::string("linear")}}, infer_activation},
      {"dropout", 1, 1, {{"rate", 0.0}}, infer_dropout},
      {"reshape", 1, 1, {{"shape", Sizes()}}, infer_reshape},
      {"repeat", 1, 1, {{"count", std::int64_t{1}}}, infer_repeat},
      {"time_mean", 1, 1, {}, infer_time_mean},
      {"concat", 1, kManyInputs, {{"axis", std::int64_t{-1}}}, infer_concat},
      {"add", 1, kManyInputs, {}, infer_elementwise},
      {"subtract", 2, 2, {}, infer_elementwise},
      {"multiply", 1, kManyInputs, {}, infer_elementwise},
      {"average", 1, kManyInputs, {}, infer_elementwise},
  };
}

const LayerOptionFact* find_option(const LayerKindFact& kind, std::string_view name) {
  for (const LayerOptionFact& option : kind.options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

void check_options(const MappedLayer& layer, const LayerKindFact& kind) {
  for (const auto& [name, value] : layer.options) {
    const LayerOptionFact* const fact = find_option(kind, name);
    if (!fact) {
      refuse_layer(layer, message("has the option '", excerpt(name), "', expected one of ",
                                  listed(layer_options(layer.kind))));
    }
    if (value.index() != fact->otherwise.index()) {
      refuse_layer(layer, message("has ", name, " of another type, expected that of its default"));
    }
  }
}

}  // namespace

const std::vector<LayerKindFact>& all_layer_kinds() {
  static const auto* const kinds = new std::vector<LayerKindFact>(make_kinds());
  return *kinds;
}

const LayerKindFact& layer_kind(const std::string& name) {
  for (const LayerKindFact& kind : all_layer_kinds()) {
    if (kind.name == name) return kind;
  }
  throw ArgumentError(message("[layers] the kind of layer '", excerpt(name), "', expected one of ",
                              listed(layer_kinds())));
}

void refuse_layer(const MappedLayer& layer, const std::string& what) {
  throw ArgumentError(
      message("[layers] the layer '", excerpt(layer.name), "' (", layer.kind, ") ", what));
}

}  // namespace mapping

using mapping::LayerKindFact;
using mapping::refuse_layer;

std::vector<std::string> layer_kinds() {
  std::vector<std::string> names;
  for (const LayerKindFact& kind : mapping::all_layer_kinds()) names.emplace_back(kind.name);
  return names;
}

std::vector<std::string> layer_options(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& option : mapping::layer_kind(kind).options) names.emplace_back(option.name);
  return names;
}

const PlainValue& layer_option(const MappedLayer& layer, std::string_view name) {
  const mapping::LayerOptionFact* const fact =
      mapping::find_option(mapping::layer_kind(layer.kind), name);
  if (!fact) refuse_layer(layer, message("has no option '", excerpt(name), "'"));
  const auto found = layer.options.find(std::string(name));
  return found == layer.options.end() ? fact->otherwise : found->second;
}

std::vector<LayerValue> layer_outputs(const MappedLayer& layer, std::span<const LayerValue> inputs,
                                      const FindSpec& find_spec) {
  const LayerKindFact& kind = mapping::layer_kind(layer.kind);
  mapping::check_options(layer, kind);
  if (inputs.size() < kind.min_inputs || inputs.size() > kind.max_inputs) {
    refuse_layer(layer, message("has ", inputs.size(), " inputs, expected ", kind.min_inputs,
                                kind.min_inputs == kind.max_inputs ? "" : " or more"));
  }
  return kind.infer(layer, inputs, find_spec);
}

FindSpec find_spec_in(const MappedModel& model) {
  std::unordered_map<std::string_view, const RnnSpec*> specs;
  for (const MappedNetwork& network : model.networks) specs.emplace(network.name, &network.spec);
  return [specs = std::move(specs)](const std::string& name) {
    const auto found = specs.find(name);
    return found == specs.end() ? nullptr : found->second;
  };
}

std::map<std::string, std::vector<LayerValue>> check_layers(std::span<const MappedLayer> layers,
                                                            std::span<const LayerOutput> outputs,
                                                            const FindSpec& find_spec) {
  std::map<std::string, std::vector<LayerValue>> values;
  const auto value_of = [&](const LayerOutput& from) -> const LayerValue* {
    const auto found = values.find(from.layer);
    const bool is_there = found != values.end() && from.index >= 0 &&
                          from.index < static_cast<std::int64_t>(found->second.size());
    return is_there ? &found->second[static_cast<std::size_t>(from.index)] : nullptr;
  };
  for (const MappedLayer& layer : layers) {
    if (layer.name.empty() || values.contains(layer.name)) {
      refuse_layer(layer, "has no name of its own, expected one");
    }
    std::vector<LayerValue> inputs;
    for (const LayerOutput& from : layer.inputs) {
      const LayerValue* const value = value_of(from);
      if (!value) {
        refuse_layer(layer, message("has output ", from.index, " of '", excerpt(from.layer),
                                    "' as its input, expected one of a layer before it"));
      }
      inputs.push_back(*value);
    }
    values.emplace(layer.name, layer_outputs(layer, inputs, find_spec));
  }
  if (outputs.empty()) throw ArgumentError("[layers] no output, expected at least one");
  for (const LayerOutput& output : outputs) {
    if (value_of(output)) continue;
    throw ArgumentError(message("[layers] output ", output.index, " of '", excerpt(output.layer),
                                "' is none of a layer of the model, expected one"));
  }
  return values;
}

}  // namespace openrnn
