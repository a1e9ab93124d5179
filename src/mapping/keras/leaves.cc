// Keras's layers by class: kinds and options.
#include <array>
#include <charconv>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/calls.h"
#include "mapping/keras/fields.h"
#include "mapping/keras/graph.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

[[noreturn]] void refuse_option(const char* option) {
  throw NoKerasLayer{message("has the option ", option, ", which is not computed here")};
}

// Our name of one of Keras's functions.
std::string function_of(const std::string& name, int keras_major) {
  for (const char* same : {"linear", "relu", "tanh", "sigmoid", "softmax", "exponential",
                           "softsign", "silu", "elu", "selu"}) {
    if (name == same) return name;
  }
  if (name == "swish") return "silu";
  if (name == "relu6") return "clip(0,6)";
  if (name == "leaky_relu") return "leaky_relu(0.2)";
  const std::string of_keras_3 = number_text(1.0 / 6.0) + ",0.5)";
  if (name == "hard_silu" || name == "hard_swish") return "hard_silu(" + of_keras_3;
  if (name == "hard_sigmoid") {
    return keras_major >= 3 ? "hard_sigmoid(" + of_keras_3 : "hard_sigmoid(0.2,0.5)";
  }
  throw NoKerasLayer{"has the activation '" + excerpt(name) + "', which is not computed here"};
}

std::string activation_of(const json& config, int keras_major) {
  const json* const value = member(config, "activation");
  if (!value || value->is_null()) return "linear";
  if (value->is_string()) return function_of(value->get<std::string>(), keras_major);
  const std::string type = text_at(*value, "class_name");
  if (type == "function") return function_of(text_at(*value, "config"), keras_major);
  throw NoKerasLayer{"has an activation of class '" + excerpt(type) +
                     "', which is not computed here"};
}

std::int64_t size_of(const json& config, const char* key, const char* old_key) {
  for (const char* one : {key, old_key}) {
    const json* const value = member(config, one);
    if (value && value->is_number_integer()) return value->get<std::int64_t>();
  }
  throw NoKerasLayer{message("has no ", key)};
}

bool is_given(const json& config, const char* key) {
  const json* const value = member(config, key);
  return value && !value->is_null() && !(value->is_boolean() && !value->get<bool>());
}

/// A layer that is being made.
struct Leaf {
  const json& config;
  int keras_major;
  MappedLayer& layer;
  std::vector<std::string>& notes;

  void note(const std::string& text) const {
    notes.push_back(message("the layer '", excerpt(layer.name), "' ", text));
  }
  void make(const char* kind) const { layer.kind = kind; }
  void activation(std::string function) const {
    layer.kind = "activation";
    layer.options["activation"] = std::move(function);
  }
  void trainable() const {
    if (!flag_at(config, "trainable", true)) layer.options["trainable"] = false;
  }
};

void parse_embedding(const Leaf& leaf) {
  leaf.make("embedding");
  if (is_given(leaf.config, "lora_rank")) refuse_option("lora_rank");
  leaf.layer.options["vocabulary"] = size_of(leaf.config, "input_dim", "");
  leaf.layer.options["dim"] = size_of(leaf.config, "output_dim", "");
  leaf.layer.options["mask_zero"] = flag_at(leaf.config, "mask_zero", false);
  leaf.trainable();
}

void parse_dense(const Leaf& leaf) {
  leaf.make("dense");
  if (is_given(leaf.config, "lora_rank")) refuse_option("lora_rank");
  leaf.layer.options["units"] = size_of(leaf.config, "units", "output_dim");
  leaf.layer.options["activation"] = activation_of(leaf.config, leaf.keras_major);
  // Keras 1 has 'bias'.
  leaf.layer.options["use_bias"] =
      flag_at(leaf.config, "use_bias", flag_at(leaf.config, "bias", true));
  leaf.trainable();
}

void parse_dropout(const Leaf& leaf) {
  leaf.make("dropout");
  leaf.layer.options["rate"] = number_at(leaf.config, "rate", number_at(leaf.config, "p", 0.0));
  if (is_given(leaf.config, "noise_shape")) {
    leaf.note("drops single elements in training, in Keras what its noise_shape says");
  }
}

void parse_spatial_dropout(const Leaf& leaf) {
  parse_dropout(leaf);
  leaf.note("drops single elements in training, in Keras a unit at all its steps");
}

void parse_noise(const Leaf& leaf) {
  leaf.note("does nothing, in Keras it adds noise in training");
}

void parse_nothing(const Leaf&) {}

void parse_masking(const Leaf& leaf) {
  const json* const value = member(leaf.config, "mask_value");
  if (value && !value->is_number()) refuse_option("mask_value of this form");
  leaf.make("masking");
  leaf.layer.options["mask_value"] = number_at(leaf.config, "mask_value", 0.0);
}

void parse_activation(const Leaf& leaf) {
  leaf.activation(activation_of(leaf.config, leaf.keras_major));
}

void parse_relu(const Leaf& leaf) {
  if (number_at(leaf.config, "threshold", 0.0) != 0.0) refuse_option("threshold");
  const double slope = number_at(leaf.config, "negative_slope", 0.0);
  if (!is_given(leaf.config, "max_value")) {
    leaf.activation(slope == 0.0 ? "relu" : "leaky_relu(" + number_text(slope) + ")");
    return;
  }
  if (slope != 0.0) refuse_option("max_value beside negative_slope");
  leaf.activation("clip(0," + number_text(number_at(leaf.config, "max_value", 0.0)) + ")");
}

void parse_leaky_relu(const Leaf& leaf) {
  // Keras 2 calls it alpha; 0.3 in both.
  const double slope =
      number_at(leaf.config, "negative_slope", number_at(leaf.config, "alpha", 0.3));
  leaf.activation("leaky_relu(" + number_text(slope) + ")");
}

void parse_elu(const Leaf& leaf) {
  leaf.activation("elu(" + number_text(number_at(leaf.config, "alpha", 1.0)) + ")");
}

void parse_softmax(const Leaf& leaf) {
  if (number_at(leaf.config, "axis", -1.0) != -1.0) refuse_option("axis");
  leaf.activation("softmax");
}

std::vector<std::int64_t> sizes_at(const json& config, const char* key) {
  const json* const value = member(config, key);
  std::vector<std::int64_t> sizes;
  if (!value || !value->is_array()) return sizes;
  for (const json& one : *value) {
    if (!one.is_null() && !one.is_number_integer()) return {};
    sizes.push_back(one.is_null() ? -1 : one.get<std::int64_t>());
  }
  return sizes;
}

void parse_flatten(const Leaf& leaf) {
  leaf.make("reshape");
  leaf.layer.options["shape"] = std::vector<std::int64_t>{-1};
}

void parse_reshape(const Leaf& leaf) {
  leaf.make("reshape");
  leaf.layer.options["shape"] = sizes_at(leaf.config, "target_shape");
}

void parse_repeat(const Leaf& leaf) {
  leaf.make("repeat");
  leaf.layer.options["count"] = size_of(leaf.config, "n", "");
}

void parse_time_mean(const Leaf& leaf) {
  if (flag_at(leaf.config, "keepdims", false)) refuse_option("keepdims");
  const std::string format = text_at(leaf.config, "data_format");
  if (!format.empty() && format != "channels_last") refuse_option("data_format");
  leaf.make("time_mean");
}

void parse_concat(const Leaf& leaf) {
  leaf.make("concat");
  leaf.layer.options["axis"] = static_cast<std::int64_t>(number_at(leaf.config, "axis", -1.0));
}
void parse_add(const Leaf& leaf) { leaf.make("add"); }
void parse_subtract(const Leaf& leaf) { leaf.make("subtract"); }
void parse_multiply(const Leaf& leaf) { leaf.make("multiply"); }
void parse_average(const Leaf& leaf) { leaf.make("average"); }

struct LeafClass {
  const char* type;
  void (*parse)(const Leaf& leaf);
};
constexpr LeafClass kLeafClasses[] = {
    {"Embedding", parse_embedding},
    {"Dense", parse_dense},
    {"Dropout", parse_dropout},
    {"SpatialDropout1D", parse_spatial_dropout},
    {"GaussianNoise", parse_noise},
    {"GaussianDropout", parse_noise},
    {"AlphaDropout", parse_noise},
    {"ActivityRegularization", parse_nothing},
    {"Identity", parse_nothing},
    {"Masking", parse_masking},
    {"Activation", parse_activation},
    {"ReLU", parse_relu},
    {"LeakyReLU", parse_leaky_relu},
    {"ELU", parse_elu},
    {"Softmax", parse_softmax},
    {"Flatten", parse_flatten},
    {"Reshape", parse_reshape},
    {"RepeatVector", parse_repeat},
    {"GlobalAveragePooling1D", parse_time_mean},
    {"Concatenate", parse_concat},
    {"Add", parse_add},
    {"Subtract", parse_subtract},
    {"Multiply", parse_multiply},
    {"Average", parse_average},
};

// Those that compute each step by itself in any case.
bool works_step_by_step(const std::string& kind) {
  return kind.empty() || kind == "dense" || kind == "dropout" || kind == "activation";
}

// Of Keras 3's operations these compute what the layers of the same names do.
bool differs_from_layer(const json& node) {
  const std::string type = text_at(node, "class_name");
  for (const char* same : {"Add", "Subtract", "Multiply", "Concatenate", "Softmax"}) {
    if (type == same) return false;
  }
  return is_keras_operation(node);
}

}  // namespace

void parse_keras_leaf(const json& node, int keras_major, KerasNode* out,
                      std::vector<std::string>* notes) {
  const std::string type = text_at(node, "class_name");
  if (type == "TimeDistributed") {
    const json* const inner = member(config_of(node), "layer");
    if (!inner) throw NoKerasLayer{"has no layer"};
    if (text_at(*inner, "class_name") == "TimeDistributed") {
      throw NoKerasLayer{"is a TimeDistributed of another one, which is not computed here"};
    }
    parse_keras_leaf(*inner, keras_major, out, notes);
    if (!works_step_by_step(out->layer.kind)) {
      throw NoKerasLayer{message("is a TimeDistributed '", excerpt(text_at(*inner, "class_name")),
                                 "', which is not computed here")};
    }
    out->inner_name = text_at(config_of(*inner), "name");
    return;
  }
  for (const LeafClass& one : kLeafClasses) {
    if (type != one.type || differs_from_layer(node)) continue;
    one.parse({config_of(node), keras_major, out->layer, *notes});
    return;
  }
  throw NoKerasLayer{"is of class '" + excerpt(type) + "', which is not computed here"};
}

std::vector<std::int64_t> keras_input_shape(const json& config) {
  for (const char* key : {"batch_shape", "batch_input_shape"}) {
    std::vector<std::int64_t> sizes = sizes_at(config, key);
    if (sizes.empty()) continue;
    sizes[0] = -1;
    return sizes;
  }
  return {};
}

}  // namespace openrnn::mapping
