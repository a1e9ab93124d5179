#include "mapping/keras/calls.h"

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/fields.h"

namespace openrnn::mapping {

namespace {

using nlohmann::json;
using Outputs = std::vector<LayerOutput>;

[[noreturn]] void refuse(const json& node, const std::string& why) {
  throw NoKerasLayer{message("the layer '", excerpt(name_of(node)), "' ", why)};
}

// {"class_name": "__keras_tensor__", "config": {"keras_history": ["lstm", 0, 0]}}, or the place
// itself; null for anything else.
const json* place_of(const json& node, const json& value) {
  if (text_at(value, "class_name") == "__keras_tensor__") {
    const json* const history = member(config_of(value), "keras_history");
    if (!history || !is_keras_place(*history)) refuse(node, "has an input without a history");
    return history;
  }
  return is_keras_place(value) ? &value : nullptr;
}

/// The one call of a layer.
class CallReader {
 public:
  CallReader(const json& node, const KerasMade& made, const KerasMasks& masks)
      : node_(node), made_(made), masks_(masks) {}

  KerasCall read() {
    const json* const nodes = member(node_, "inbound_nodes");
    if (!nodes || !nodes->is_array() || nodes->empty()) refuse(node_, "has no input");
    if (nodes->size() > 1) refuse(node_, "is applied more than once, which is not computed here");
    const json& call = (*nodes)[0];
    if (call.is_object()) {
      const json* const args = member(call, "args");
      const json* const kwargs = member(call, "kwargs");
      if (args) add_tensors(*args, 0);
      if (kwargs) add_named(*kwargs);
    } else if (call.is_array()) {
      for (const json& one : call) {
        if (!is_keras_place(one)) refuse(node_, "has an input that is no layer's output");
        inputs_.push_back(made_.find(one));
        if (one.size() > 3) add_named(one[3]);
      }
    }
    if (inputs_.empty()) refuse(node_, "has no input");
    return {std::move(inputs_), has_mask_};
  }

 private:
  void add_tensors(const json& value, int depth) {
    if (const json* const place = place_of(node_, value)) {
      inputs_.push_back(made_.find(*place));
    } else if (value.is_array() && depth < 2) {
      for (const json& one : value) add_tensors(one, depth + 1);
    } else {
      refuse(node_, "has an input that is no layer's output");
    }
  }

  void add_named(const json& named) {
    if (!named.is_object()) return;
    for (const auto& [key, value] : named.items()) {
      if (key == "initial_state" && !value.is_null()) {
        add_tensors(value, 0);
      } else if (key == "mask" && !value.is_null()) {
        check_masks(value);
      } else if (value.is_object() || value.is_array()) {
        refuse(node_, message("is called with ", excerpt(key), ", which is not computed here"));
      } else if (key == "training" && value.is_boolean() && value.get<bool>()) {
        refuse(node_, "is called with training=True, which is not computed here");
      }
    }
  }

  // One mask, or a list with one for each input.
  void check_masks(const json& value) {
    has_mask_ = true;
    if (place_of(node_, value) || !value.is_array()) {
      check_mask(value, 0);
      return;
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_null()) check_mask(value[i], i);
    }
  }

  // The mask is left out, as the input brings the same one.
  void check_mask(const json& value, std::size_t input) {
    const json* const place = place_of(node_, value);
    if (!place) refuse(node_, "is called with a mask that is no layer's output");
    const auto name = (*place)[0].get<std::string>();
    const auto given = made_.masks.find(name);
    const KerasMask* const own = input < inputs_.size() ? masks_.find(inputs_[input]) : nullptr;
    if (given == made_.masks.end() || !own || *own != given->second) {
      refuse(node_, message("is called with the mask '", excerpt(name),
                            "', which is not that of its input"));
    }
  }

  const json& node_;
  const KerasMade& made_;
  const KerasMasks& masks_;
  Outputs inputs_;
  bool has_mask_ = false;
};

/// The arguments of an operation that computes a mask.
class MaskReader {
 public:
  MaskReader(const json& node, const KerasMade& made) : node_(node), made_(made) {
    const json* const nodes = member(node, "inbound_nodes");
    if (nodes && nodes->is_array() && nodes->size() == 1) args_ = member((*nodes)[0], "args");
  }

  KerasMask read() const { return text_at(node_, "class_name") == "Any" ? any() : not_equal(); }

 private:
  [[noreturn]] void refuse_mask() const {
    refuse(node_, message("of class '", text_at(node_, "class_name"),
                          "' computes no mask of an Embedding or Masking"));
  }

  const json& argument(std::size_t number, std::size_t count) const {
    if (!args_ || !args_->is_array() || args_->size() != count) refuse_mask();
    return (*args_)[number];
  }

  KerasMask not_equal() const {
    const json* const place = place_of(node_, argument(0, 2));
    const json& value = argument(1, 2);
    if (!place || !value.is_number()) refuse_mask();
    return {.of = made_.find(*place), .value = value.get<double>()};
  }

  const KerasMask& mask(const json& value) const {
    const json* const place = place_of(node_, value);
    if (!place) refuse_mask();
    const auto found = made_.masks.find((*place)[0].get<std::string>());
    if (found == made_.masks.end()) refuse_mask();
    return found->second;
  }

  KerasMask any() const {
    const json& config = config_of(node_);
    KerasMask made = mask(argument(0, 1));
    const json* axis = member(config, "axis");
    if (axis && axis->is_array() && axis->size() == 1) axis = &(*axis)[0];
    const bool last = axis && axis->is_number_integer() && *axis == -1;
    if (!last || made.any || flag_at(config, "keepdims", false)) refuse_mask();
    made.any = true;
    return made;
  }

  const json& node_;
  const KerasMade& made_;
  const json* args_ = nullptr;
};

}  // namespace

void KerasMasks::add(const MappedLayer& layer) {
  const LayerOutput& from = layer.inputs.at(0);
  const auto put = [&](std::int64_t index, const KerasMask& mask) {
    masks_[{layer.name, index}] = mask;
  };
  if (layer.kind == "embedding" && layer_option_as<bool>(layer, "mask_zero")) put(0, {.of = from});
  if (layer.kind == "masking") {
    put(0, {.of = from, .value = layer_option_as<double>(layer, "mask_value"), .any = true});
  }
  const KerasMask* const given = find(from);
  if (!given) return;
  if (layer.kind == "dense" || layer.kind == "activation" || layer.kind == "dropout") {
    put(0, *given);
  }
  if (layer.kind == "recurrent" && layer_option_as<bool>(layer, "return_sequences")) {
    put(0, *given);
    if (layer_option_as<std::string>(layer, "merge") == "none") put(1, *given);
  }
}

const KerasMask* KerasMasks::find(const LayerOutput& output) const {
  const auto found = masks_.find({output.layer, output.index});
  return found == masks_.end() ? nullptr : &found->second;
}

LayerOutput KerasMade::find(const json& place) const {
  const auto name = place[0].get<std::string>();
  if (masks.contains(name)) {
    throw NoKerasLayer{
        message("the mask '", excerpt(name), "' is used as values, which is not computed here")};
  }
  const auto found = outputs.find(name);
  const auto index = place[2].get<std::int64_t>();
  if (found == outputs.end() || index < 0 ||
      index >= static_cast<std::int64_t>(found->second.size())) {
    throw NoKerasLayer{message("its layer '", excerpt(name), "' is used before it is there")};
  }
  if (place[1].get<std::int64_t>() != 0) {
    throw NoKerasLayer{message("the layer '", excerpt(name),
                               "' is applied more than once, which is not computed here")};
  }
  return found->second[static_cast<std::size_t>(index)];
}

bool is_keras_place(const json& item) {
  return item.is_array() && item.size() >= 3 && item[0].is_string() &&
         item[1].is_number_integer() && item[2].is_number_integer();
}

// `.h5` says no module; there layers of Keras 3 have "trainable", and operations have not.
bool is_keras_operation(const json& node) {
  const json* const module = member(node, "module");
  if (module) return text_at(node, "module").starts_with("keras.src.ops");
  const json* const nodes = member(node, "inbound_nodes");
  const bool of_keras_3 = nodes && nodes->is_array() && !nodes->empty() && (*nodes)[0].is_object();
  const json& config = config_of(node);
  return of_keras_3 && !member(config, "trainable") && !member(config, "layers");
}

bool is_keras_mask(const json& node) {
  const std::string type = text_at(node, "class_name");
  return is_keras_operation(node) && (type == "NotEqual" || type == "Any");
}

KerasMask read_keras_mask(const json& node, const KerasMade& made) {
  return MaskReader(node, made).read();
}

KerasCall read_keras_call(const json& node, const KerasMade& made, const KerasMasks& masks) {
  return CallReader(node, made, masks).read();
}

}  // namespace openrnn::mapping
