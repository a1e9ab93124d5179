#include "mapping/onnx/values/moves.h"

#include <algorithm>
#include <numeric>

#include "base/message.h"
#include "mapping/onnx/values/attributes.h"

namespace openrnn::mapping {

namespace {

struct MoveCall {
  const OnnxNode& node;
  const std::vector<const Array*>& inputs;
  MemoryBudget* budget;

  const Array* optional(std::size_t index) const {
    return index < inputs.size() ? inputs[index] : nullptr;
  }
  const Array& input(std::size_t index) const {
    if (const Array* found = optional(index)) return *found;
    refuse_node(node, message("input ", index, " is left out, expected it"));
  }
  // An attribute of old opsets, an input of newer ones.
  std::optional<std::vector<std::int64_t>> integers(std::string_view name,
                                                    std::size_t index) const {
    if (const auto* found = find_integers(node, name)) return *found;
    if (const Array* found = optional(index)) return integers_of(*found);
    return std::nullopt;
  }
  std::vector<std::int64_t> required(std::string_view name, std::size_t index) const {
    if (auto found = integers(name, index)) return *std::move(found);
    refuse_node(node, message("there are no ", name, ", expected them"));
  }
  std::size_t axis(std::int64_t fallback) const {
    return axis_of(integer_or(node, "axis", fallback), input(0).shape().size());
  }
};

using Arrays = std::vector<Array>;

Arrays one(Array array) {
  Arrays arrays;
  arrays.push_back(std::move(array));
  return arrays;
}

Array in_shape(const MoveCall& call, Shape shape) {
  call.budget->take(call.input(0).size_bytes());
  return Array(call.input(0)).reshaped(std::move(shape));
}

Arrays move_identity(const MoveCall& call) { return one(in_shape(call, call.input(0).shape())); }

Arrays move_cast(const MoveCall& call) {
  const std::int64_t to = integer_or(call.node, "to", 0);
  const std::optional<DType> dtype =
      to > 0 && to < 100 ? dtype_of_onnx(static_cast<std::int32_t>(to)) : std::nullopt;
  if (!dtype) {
    refuse_node(call.node, message("the element type is ", to, ", expected that of a DType"));
  }
  return one(converted(call.input(0), *dtype, call.budget));
}

Arrays move_concat(const MoveCall& call) {
  std::vector<const Array*> parts;
  for (std::size_t i = 0; i < std::max<std::size_t>(call.inputs.size(), 1); ++i) {
    parts.push_back(&call.input(i));
  }
  return one(concatenated(parts, call.axis(0), call.budget));
}

// Each of these attributes is a value of its own kind.
Arrays move_constant(const MoveCall& call) {
  const OnnxNode& node = call.node;
  if (const OnnxTensor* tensor = find_tensor(node, "value")) {
    call.budget->take(tensor->bytes.size());
    return one(tensor->array());
  }
  if (const std::int64_t* value = find_integer(node, "value_int")) {
    return one(int64_array({}, {*value}));
  }
  if (const auto* values = find_integers(node, "value_ints")) {
    return one(int64_array({static_cast<std::int64_t>(values->size())}, *values));
  }
  if (const float* value = find_number(node, "value_float")) {
    return one(Array::of<float>({}, std::span(value, 1)));
  }
  if (const auto* values = find_numbers(node, "value_floats")) {
    return one(Array::of<float>({static_cast<std::int64_t>(values->size())}, *values));
  }
  refuse_node(node, "there is no value, expected a tensor or numbers");
}

Arrays move_constant_of_shape(const MoveCall& call) {
  const OnnxTensor* value = find_tensor(call.node, "value");
  const Array zero(DType::kFloat32, {1});
  return one(filled(value ? value->array() : zero, integers_of(call.input(0)), call.budget));
}

Arrays move_expand(const MoveCall& call) {
  return one(expanded(call.input(0), integers_of(call.input(1)), call.budget));
}

Arrays move_flatten(const MoveCall& call) {
  const Shape& shape = call.input(0).shape();
  const std::int64_t rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = integer_or(call.node, "axis", 1);
  if (axis < -rank || axis > rank) axis_of(axis, shape.size());
  if (axis < 0) axis += rank;
  const Shape rows(shape.begin(), shape.begin() + axis), columns(shape.begin() + axis, shape.end());
  return one(in_shape(call, {shape_size(rows), shape_size(columns)}));
}

Arrays move_gather(const MoveCall& call) {
  return one(gathered(call.input(0), call.input(1), call.axis(0), call.budget));
}

Arrays move_reshape(const MoveCall& call) {
  Shape shape = call.required("shape", 1);
  const Shape& old = call.input(0).shape();
  const bool zeros = integer_or(call.node, "allowzero", 0) != 0;
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zeros) {
      if (i >= old.size()) refuse_node(call.node, "a size is that of an axis that is not there");
      shape[i] = old[i];
    }
    if (shape[i] == -1) {
      if (open >= 0) refuse_node(call.node, "two sizes are -1, expected one at most");
      open = static_cast<std::int64_t>(i);
    } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
      refuse_node(call.node, "the shape is " + to_string(shape) + ", expected sizes of at least 0");
    }
  }
  if (open >= 0) shape[static_cast<std::size_t>(open)] = known ? call.input(0).size() / known : 0;
  return one(in_shape(call, std::move(shape)));
}

Arrays move_shape(const MoveCall& call) {
  const Shape& shape = call.input(0).shape();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto end_of = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, {}, rank);
  };
  const std::int64_t start = end_of(integer_or(call.node, "start", 0));
  const std::int64_t end = std::max(start, end_of(integer_or(call.node, "end", rank)));
  call.budget->take(static_cast<std::uint64_t>(end - start) * 8);
  return one(int64_array({end - start}, {shape.begin() + start, shape.begin() + end}));
}

Arrays move_size(const MoveCall& call) {
  call.budget->take(8);
  return one(int64_array({}, {call.input(0).size()}));
}

Arrays move_slice(const MoveCall& call) {
  const std::vector<std::int64_t> starts = call.required("starts", 1),
                                  ends = call.required("ends", 2);
  std::vector<std::int64_t> in_order(starts.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  const std::vector<std::int64_t> axes = call.integers("axes", 3).value_or(in_order);
  const std::vector<std::int64_t> steps =
      call.integers("steps", 4).value_or(std::vector<std::int64_t>(starts.size(), 1));
  const std::size_t count = starts.size(), rank = call.input(0).shape().size();
  if (ends.size() != count || axes.size() != count || steps.size() != count || count > rank) {
    refuse_node(call.node, "starts, ends, axes and steps differ in number");
  }
  Array out = in_shape(call, call.input(0).shape());
  for (std::size_t i = 0; i < count; ++i) {
    out = sliced(out, axis_of(axes[i], rank), {starts[i], ends[i], steps[i]}, call.budget);
  }
  return one(std::move(out));
}

std::vector<std::int64_t> sizes_of_split(const MoveCall& call, std::int64_t size) {
  if (auto sizes = call.integers("split", 1)) return *std::move(sizes);
  const auto parts = static_cast<std::int64_t>(call.node.outputs.size());
  if (parts == 0) refuse_node(call.node, "there are no outputs");
  // Equal ones, the last smaller where that does not come out even (opset 18).
  const std::int64_t each = size / parts + (size % parts ? 1 : 0);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), each);
  sizes.back() = size - each * (parts - 1);
  return sizes;
}

Arrays move_split(const MoveCall& call) {
  const std::size_t axis = call.axis(0);
  const std::int64_t size = call.input(0).shape()[axis];
  const std::vector<std::int64_t> sizes = sizes_of_split(call, size);
  Arrays parts;
  std::int64_t at = 0;
  for (const std::int64_t part : sizes) {
    if (part < 0 || part > size - at) break;
    parts.push_back(sliced(call.input(0), axis, {at, at + part, 1}, call.budget));
    at += part;
  }
  if (at != size || parts.size() != call.node.outputs.size() || parts.size() != sizes.size()) {
    refuse_node(call.node, message("parts of ", to_string(sizes), " are made of ", size,
                                   ", expected a size for each output"));
  }
  return parts;
}

Arrays move_squeeze(const MoveCall& call) {
  const Shape& shape = call.input(0).shape();
  const auto axes = call.integers("axes", 1);
  std::vector<bool> drop(shape.size(), false);
  for (std::size_t i = 0; i < shape.size(); ++i) drop[i] = !axes && shape[i] == 1;
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>())) {
    const std::size_t at = axis_of(axis, shape.size());
    if (shape[at] != 1) refuse_node(call.node, message("axis ", at, " has size ", shape[at]));
    drop[at] = true;
  }
  Shape rest;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!drop[i]) rest.push_back(shape[i]);
  }
  return one(in_shape(call, std::move(rest)));
}

Arrays move_unsqueeze(const MoveCall& call) {
  const std::vector<std::int64_t> axes = call.required("axes", 1);
  const Shape& old = call.input(0).shape();
  Shape shape(old.size() + axes.size(), -1);
  for (const std::int64_t axis : axes) {
    std::int64_t& size = shape[axis_of(axis, shape.size())];
    if (size == 1) refuse_node(call.node, "an axis is there twice, expected unequal ones");
    size = 1;
  }
  auto next = old.begin();
  for (std::int64_t& size : shape) {
    if (size < 0) size = *next++;
  }
  return one(in_shape(call, std::move(shape)));
}

Arrays move_transpose(const MoveCall& call) {
  std::vector<std::int64_t> perm(call.input(0).shape().size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto* given = find_integers(call.node, "perm")) perm = *given;
  return one(transposed(call.input(0), perm, call.budget));
}

struct Move {
  std::string_view op_type;
  Arrays (*compute)(const MoveCall& call);
};

constexpr Move kMoves[] = {
    {"Cast", move_cast},           {"Concat", move_concat},
    {"Constant", move_constant},   {"ConstantOfShape", move_constant_of_shape},
    {"Expand", move_expand},       {"Flatten", move_flatten},
    {"Gather", move_gather},       {"Identity", move_identity},
    {"Reshape", move_reshape},     {"Shape", move_shape},
    {"Size", move_size},           {"Slice", move_slice},
    {"Split", move_split},         {"Squeeze", move_squeeze},
    {"Transpose", move_transpose}, {"Unsqueeze", move_unsqueeze},
};

const Move* find_move(const OnnxNode& node) {
  const auto* found = std::find_if(std::begin(kMoves), std::end(kMoves),
                                   [&](const Move& move) { return move.op_type == node.op_type; });
  return found == std::end(kMoves) || !node.domain.empty() ? nullptr : found;
}

}  // namespace

bool is_move(const OnnxNode& node) { return find_move(node) != nullptr; }

std::vector<std::string_view> move_names() {
  std::vector<std::string_view> names;
  for (const Move& move : kMoves) names.push_back(move.op_type);
  return names;
}

std::vector<Array> compute_move(const OnnxNode& node, const std::vector<const Array*>& inputs,
                                MemoryBudget* budget) {
  const Move* move = find_move(node);
  if (!move) refuse_node(node, "it is none of the operators that move elements");
  return move->compute({node, inputs, budget});
}

}  // namespace openrnn::mapping
