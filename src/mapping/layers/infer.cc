#include "mapping/layers/infer.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/layers/kinds.h"

namespace openrnn::mapping {

namespace {

// So that a small file cannot ask for a value that no memory holds.
constexpr std::int64_t kMostRepeats = 1 << 20;

struct Expected {
  std::string name;
  Shape shape;
};

// Weights in this order and of these shapes, or none.
void check_weights(const MappedLayer& layer, DType dtype, const std::vector<Expected>& expected) {
  if (layer.weights.empty()) return;
  if (layer.weights.size() != expected.size()) {
    refuse_layer(layer,
                 message("has ", layer.weights.size(), " weights, expected ", expected.size()));
  }
  const auto check = [&](const std::string& what, const Array& values, const Shape& shape) {
    if (values.shape() == shape && values.dtype() == dtype) return;
    refuse_layer(layer, message("has ", excerpt(what), " ", dtype_name(values.dtype()), " ",
                                to_string(values.shape()), ", expected ", dtype_name(dtype), " ",
                                to_string(shape)));
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const LayerWeight& weight = layer.weights[i];
    if (weight.name != expected[i].name) {
      refuse_layer(layer, message("has the weight '", excerpt(weight.name), "', expected '",
                                  expected[i].name, "'"));
    }
    check(weight.name, weight.values, expected[i].shape);
    for (const auto& [slot, values] : weight.slots) {
      check("the slot '" + slot + "'", values, expected[i].shape);
    }
  }
}

void require_rank(const MappedLayer& layer, const LayerValue& input, std::size_t least,
                  std::size_t most) {
  const std::size_t rank = input.shape.size();
  if (rank >= least && rank <= most) return;
  refuse_layer(layer, message("has an input of shape ", to_string(input.shape), ", expected ",
                              least, most == least ? "" : " or more", " dimensions"));
}

void require_floating(const MappedLayer& layer, const LayerValue& input) {
  if (is_floating(input.dtype)) return;
  refuse_layer(layer,
               message("has an input of ", dtype_name(input.dtype), ", expected floating point"));
}

std::int64_t positive(const MappedLayer& layer, const char* option) {
  const auto value = layer_option_as<std::int64_t>(layer, option);
  if (value > 0) return value;
  refuse_layer(layer, message("has ", option, " ", value, ", expected 1 or more"));
}

DType dtype_in(const MappedLayer& layer, bool integers) {
  const auto& name = layer_option_as<std::string>(layer, "dtype");
  for (const DType one :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16, DType::kInt32}) {
    if (name == dtype_name(one) && (integers || one != DType::kInt32)) return one;
  }
  refuse_layer(layer, message("has dtype '", excerpt(name), "', expected ",
                              integers ? "int32 or " : "", "a floating one"));
}

constexpr std::size_t kAnyRank = 64;

}  // namespace

LayerValues infer_input(const MappedLayer& layer, std::span<const LayerValue>, const FindSpec&) {
  const auto& sizes = layer_option_as<std::vector<std::int64_t>>(layer, "shape");
  LayerValue value{dtype_in(layer, true), Shape(sizes.begin(), sizes.end())};
  require_rank(layer, value, 1, kAnyRank);
  for (const std::int64_t size : sizes) {
    if (size < -1) refuse_layer(layer, message("has a size of ", size, ", expected -1 or more"));
  }
  return {value};
}

LayerValues infer_embedding(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec&) {
  const std::int64_t vocabulary = positive(layer, "vocabulary"), dim = positive(layer, "dim");
  if (inputs[0].dtype != DType::kInt32) {
    refuse_layer(layer,
                 message("has an input of ", dtype_name(inputs[0].dtype), ", expected int32"));
  }
  LayerValue value{dtype_in(layer, false), inputs[0].shape,
                   layer_option_as<bool>(layer, "mask_zero")};
  // A mask is of [B, T].
  if (value.masked) require_rank(layer, inputs[0], 2, 2);
  value.shape.push_back(dim);
  check_weights(layer, value.dtype, {{"embeddings", {vocabulary, dim}}});
  return {value};
}

LayerValues infer_masking(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec&) {
  require_rank(layer, inputs[0], 3, 3);
  require_floating(layer, inputs[0]);
  LayerValue value = inputs[0];
  value.masked = true;
  return {value};
}

LayerValues infer_dense(const MappedLayer& layer, std::span<const LayerValue> inputs,
                        const FindSpec&) {
  require_rank(layer, inputs[0], 2, kAnyRank);
  require_floating(layer, inputs[0]);
  LayerValue value = inputs[0];
  const std::int64_t width = value.shape.back(), units = positive(layer, "units");
  if (width < 1) {
    refuse_layer(layer, message("has an input of shape ", to_string(value.shape),
                                ", expected its last size to be known"));
  }
  parse_layer_function(layer_option_as<std::string>(layer, "activation"));
  std::vector<Expected> expected{{"kernel", {width, units}}};
  if (layer_option_as<bool>(layer, "use_bias")) expected.push_back({"bias", {units}});
  check_weights(layer, value.dtype, expected);
  value.shape.back() = units;
  return {value};
}

LayerValues infer_activation(const MappedLayer& layer, std::span<const LayerValue> inputs,
                             const FindSpec&) {
  require_floating(layer, inputs[0]);
  parse_layer_function(layer_option_as<std::string>(layer, "activation"));
  return {inputs[0]};
}

LayerValues infer_dropout(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec&) {
  require_floating(layer, inputs[0]);
  const auto rate = layer_option_as<double>(layer, "rate");
  if (rate >= 0.0 && rate <= 1.0) return {inputs[0]};
  refuse_layer(layer, message("has rate ", rate, ", expected 0 to 1"));
}

LayerValues infer_reshape(const MappedLayer& layer, std::span<const LayerValue> inputs,
                          const FindSpec&) {
  const auto& wanted = layer_option_as<std::vector<std::int64_t>>(layer, "shape");
  require_rank(layer, inputs[0], 1, kAnyRank);
  LayerValue value{inputs[0].dtype, {inputs[0].shape[0]}};
  std::int64_t known = 1, given = 1, open = 0;
  for (std::size_t i = 1; i < inputs[0].shape.size(); ++i) {
    const std::int64_t size = inputs[0].shape[i];
    if (size < 0 || given < 0) {
      given = -1;
    } else if (__builtin_mul_overflow(given, size, &given)) {
      refuse_layer(layer, "has an input with more elements than there can be");
    }
  }
  for (const std::int64_t size : wanted) {
    value.shape.push_back(size);
    open += size == -1;
    if (size < -1 || open > 1 || (size > 0 && __builtin_mul_overflow(known, size, &known))) {
      refuse_layer(layer, message("has the shape ", to_string(Shape(wanted.begin(), wanted.end())),
                                  ", expected sizes, one of them -1"));
    }
    if (size == 0) known = 0;
  }
  if (given < 0) return {value};
  const bool fits = open ? known > 0 && given % known == 0 : given == known;
  if (!fits) {
    refuse_layer(layer,
                 message("has an input of shape ", to_string(inputs[0].shape),
                         ", which does not fit ", to_string(Shape(wanted.begin(), wanted.end()))));
  }
  std::replace(value.shape.begin() + 1, value.shape.end(), std::int64_t{-1},
               known > 0 ? given / known : 0);
  return {value};
}

LayerValues infer_repeat(const MappedLayer& layer, std::span<const LayerValue> inputs,
                         const FindSpec&) {
  require_rank(layer, inputs[0], 2, 2);
  require_floating(layer, inputs[0]);
  const std::int64_t count = positive(layer, "count");
  if (count > kMostRepeats) {
    refuse_layer(layer, message("has count ", count, ", expected at most ", kMostRepeats));
  }
  return {{inputs[0].dtype, {inputs[0].shape[0], count, inputs[0].shape[1]}}};
}

LayerValues infer_time_mean(const MappedLayer& layer, std::span<const LayerValue> inputs,
                            const FindSpec&) {
  require_rank(layer, inputs[0], 3, 3);
  require_floating(layer, inputs[0]);
  return {{inputs[0].dtype, {inputs[0].shape[0], inputs[0].shape[2]}}};
}

}  // namespace openrnn::mapping
