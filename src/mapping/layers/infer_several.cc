// Layers of several inputs: recurrent ones with states, and what merges.
#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/layers/infer.h"
#include "mapping/layers/kinds.h"

namespace openrnn::mapping {

namespace {

bool agree(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

[[noreturn]] void refuse_input(const MappedLayer& layer, std::size_t number,
                               const LayerValue& input, const std::string& expected) {
  refuse_layer(layer, message("has input ", number, " ", dtype_name(input.dtype), " ",
                              to_string(input.shape), ", expected ", expected));
}

// The states of one direction, h and c, or of both.
void check_states(const MappedLayer& layer, std::span<const LayerValue> states,
                  const RnnSpec& spec) {
  const std::size_t expected =
      static_cast<std::size_t>(spec.num_dirs()) * (spec.has_cell() ? 2U : 1U);
  if (states.size() != expected || spec.num_layers != 1) {
    refuse_layer(layer, message("has ", states.size(), " initial states and ", spec.num_layers,
                                " layers, expected ", expected, " of one layer"));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool is_h = !spec.has_cell() || i % 2 == 0;
    const std::int64_t width = is_h ? spec.hidden_size() : spec.num_units;
    const Shape& shape = states[i].shape;
    if (shape.size() == 2 && agree(shape[1], width) && states[i].dtype == spec.dtype) continue;
    refuse_input(layer, i + 1, states[i],
                 message(dtype_name(spec.dtype), " [B, ", width, "], a state"));
  }
}

// The options for states to begin with: one row for each layer and direction, or nothing.
void check_initial(const MappedLayer& layer, std::size_t inputs, const RnnSpec& spec) {
  const auto check = [&](const char* option, std::int64_t width) {
    const auto& given = layer_option_as<std::vector<double>>(layer, option);
    if (given.empty()) return;
    if (inputs > 1) {
      refuse_layer(layer, message("has ", option, " and states as inputs, expected one of both"));
    }
    const std::int64_t expected = spec.num_pseudo_layers() * width;
    if (static_cast<std::int64_t>(given.size()) == expected) return;
    refuse_layer(layer, message("has ", given.size(), " values of ", option, ", expected ",
                                expected, width > 0 ? " or none" : " without a cell state"));
  };
  check("initial_h", spec.hidden_size());
  check("initial_c", spec.has_cell() ? spec.num_units : 0);
}

bool one_shape(std::span<const LayerValue> inputs, std::size_t but_axis) {
  return std::all_of(inputs.begin(), inputs.end(), [&](const LayerValue& input) {
    if (input.dtype != inputs[0].dtype || input.shape.size() != inputs[0].shape.size()) {
      return false;
    }
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      if (axis != but_axis && !agree(input.shape[axis], inputs[0].shape[axis])) return false;
    }
    return true;
  });
}

void require_mergeable(const MappedLayer& layer, std::span<const LayerValue> inputs,
                       std::size_t but_axis) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].masked) {
      refuse_layer(layer, "merges inputs with a mask, expected inputs without one");
    }
    if (!is_floating(inputs[i].dtype)) refuse_input(layer, i, inputs[i], "floating point");
    if (one_shape({&inputs[0], i + 1}, but_axis)) continue;
    refuse_input(layer, i, inputs[i],
                 message("that of the first one, ", dtype_name(inputs[0].dtype), " ",
                         to_string(inputs[0].shape)));
  }
}

// The most that is known of each size.
Shape joined_shape(std::span<const LayerValue> inputs) {
  Shape shape = inputs[0].shape;
  for (const LayerValue& input : inputs) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      shape[axis] = std::max(shape[axis], input.shape[axis]);
    }
  }
  return shape;
}

}  // namespace

LayerValues infer_recurrent(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec& find_spec) {
  const auto& name = layer_option_as<std::string>(layer, "network");
  const RnnSpec* const spec = find_spec(name);
  if (!spec) refuse_layer(layer, message("has no network '", excerpt(name), "', expected one"));
  const Shape& shape = inputs[0].shape;
  if (shape.size() != 3 || !agree(shape[2], spec->input_size) || inputs[0].dtype != spec->dtype) {
    refuse_input(layer, 0, inputs[0],
                 message(dtype_name(spec->dtype), " [B, T, ", spec->input_size, "]"));
  }
  if (inputs.size() > 1) check_states(layer, inputs.subspan(1), *spec);
  check_initial(layer, inputs.size(), *spec);
  const auto& merge = layer_option_as<std::string>(layer, "merge");
  const bool both = spec->num_dirs() == 2;
  constexpr std::string_view kMerges[] = {"concat", "sum", "ave", "mul", "none"};
  if (std::ranges::find(kMerges, merge) == std::end(kMerges) || (!both && merge != "concat")) {
    refuse_layer(layer, message("has merge '", excerpt(merge), "', expected concat",
                                both ? ", sum, ave, mul or none" : " of one direction"));
  }
  const bool sequences = layer_option_as<bool>(layer, "return_sequences");
  const bool reverse = layer_option_as<bool>(layer, "reverse");
  if (both && reverse) refuse_layer(layer, "is reverse and bidirectional, expected one of both");
  const std::int64_t width = spec->hidden_size() * (both && merge == "concat" ? 2 : 1);
  LayerValue output{spec->dtype, {shape[0], width}, sequences && inputs[0].masked};
  if (sequences) output.shape.insert(output.shape.begin() + 1, shape[1]);
  LayerValues values(both && merge == "none" ? 2 : 1, output);
  if (!layer_option_as<bool>(layer, "return_state")) return values;
  if (spec->num_layers != 1) {
    refuse_layer(layer, message("returns states of ", spec->num_layers, " layers, expected one"));
  }
  for (std::int64_t direction = 0; direction < spec->num_dirs(); ++direction) {
    values.push_back({spec->dtype, {shape[0], spec->hidden_size()}});
    if (spec->has_cell()) values.push_back({spec->dtype, {shape[0], spec->num_units}});
  }
  return values;
}

LayerValues infer_elementwise(const MappedLayer& layer, std::span<const LayerValue> inputs,
                              const FindSpec&) {
  require_mergeable(layer, inputs, inputs[0].shape.size());
  return {{inputs[0].dtype, joined_shape(inputs)}};
}

LayerValues infer_concat(const MappedLayer& layer, std::span<const LayerValue> inputs,
                         const FindSpec&) {
  const auto rank = static_cast<std::int64_t>(inputs[0].shape.size());
  const auto given = layer_option_as<std::int64_t>(layer, "axis");
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 1 || axis >= rank) {
    refuse_layer(layer, message("has axis ", given, ", expected one behind the first of ", rank));
  }
  const auto at = static_cast<std::size_t>(axis);
  require_mergeable(layer, inputs, at);
  LayerValue value{inputs[0].dtype, joined_shape(inputs)};
  value.shape[at] = 0;
  for (const LayerValue& input : inputs) {
    const bool known = value.shape[at] >= 0 && input.shape[at] >= 0;
    if (!known) {
      value.shape[at] = -1;
    } else if (__builtin_add_overflow(value.shape[at], input.shape[at], &value.shape[at])) {
      refuse_layer(layer, "has more columns than there can be");
    }
  }
  return {value};
}

}  // namespace openrnn::mapping
