// One recurrent node.
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/onnx/layers.h"
#include "mapping/onnx/values/attributes.h"

namespace openrnn::mapping {

namespace {

OnnxConstant constant_input(const OnnxNode& node, const OnnxScope& scope, std::size_t index,
                            const char* name, std::set<std::string>* used) {
  if (std::optional<OnnxConstant> found = scope.viewed(node.input(index), used)) {
    return *std::move(found);
  }
  const OnnxNode* from = scope.producer(node.input(index));
  if (from && from->op_type == "DequantizeLinear") {
    refuse_node(node, message(name, " is quantised: it comes from DequantizeLinear '",
                              excerpt(from->label()), "', expected floating constants"));
  }
  refuse_node(node, message(name, " is computed when the model runs, expected constants"));
}

std::optional<OnnxConstant> optional_constant(const OnnxNode& node, const OnnxScope& scope,
                                              std::size_t index, const char* name,
                                              std::set<std::string>* used) {
  if (node.input(index).empty()) return std::nullopt;
  return constant_input(node, scope, index, name, used);
}

bool all_zero(const Array& array) {
  for (std::int64_t i = 0; i < array.size(); ++i) {
    if (element(array.view(), i) != 0.0) return false;
  }
  return true;
}

// [D, B, U] or [B, D, U] as [D, U], if the rows of a batch are equal.
std::optional<Array> row_of_state(const Array& state, const OnnxCell& cell) {
  const RnnSpec& spec = cell.spec;
  if (state.shape().size() != 3 || state.dtype() != spec.dtype || state.size() == 0) return {};
  MemoryBudget free;
  const Array by_direction = cell.batch_major ? transposed(state, {1, 0, 2}, &free) : state;
  const std::int64_t batch = by_direction.shape()[1];
  if (by_direction.shape() != Shape{spec.num_dirs(), batch, spec.num_units}) return {};
  const Array first = sliced(by_direction, 1, {0, 1, 1}, &free);
  const Array again = expanded(first, by_direction.shape(), &free);
  if (std::memcmp(again.data(), by_direction.data(), again.size_bytes()) != 0) return {};
  return Array(first).reshaped({spec.num_dirs(), spec.num_units});
}

// The state that the node begins with, where it is constant but for the size of the batch.
std::optional<Array> state_of(const OnnxNode& node, const OnnxScope& scope, std::size_t index,
                              const OnnxCell& cell, std::set<std::string>* used) {
  if (node.input(index).empty()) return std::nullopt;
  std::set<std::string> from;
  std::optional<Array> state = scope.constant(node.input(index), &from);
  const OnnxNode* made = scope.producer(node.input(index));
  if (!state && made && made->op_type == "Expand" && made->domain.empty()) {
    state = scope.constant(made->input(0), &from);
  }
  if (!state || !is_floating(state->dtype()) || all_zero(*state)) return std::nullopt;
  std::optional<Array> row = row_of_state(*state, cell);
  if (row) used->insert(from.begin(), from.end());
  return row;
}

}  // namespace

OnnxWeightViews OnnxInputs::views() const {
  OnnxWeightViews views{.w = w.view, .r = r.view};
  if (b) views.b = b->view;
  if (p) views.p = p->view;
  return views;
}

OnnxLayer layer_of_node(const OnnxNode& node, const OnnxScope& scope) {
  OnnxLayer layer{.node = &node, .cell = cell_of_node(node), .weights = {}};
  if (layer.cell.reverse) {
    refuse_node(node, "the direction is reverse, expected forward or bidirectional");
  }
  layer.weights = {.w = constant_input(node, scope, 1, "W", &layer.tensors),
                   .r = constant_input(node, scope, 2, "R", &layer.tensors),
                   .b = optional_constant(node, scope, 3, "B", &layer.tensors),
                   .p = optional_constant(node, scope, 7, "P", &layer.tensors)};
  set_weights(node, layer.weights.views(), &layer.cell);
  layer.initial_h = state_of(node, scope, 5, layer.cell, &layer.tensors);
  if (layer.cell.spec.is_lstm()) {
    layer.initial_c = state_of(node, scope, 6, layer.cell, &layer.tensors);
  }
  return layer;
}

}  // namespace openrnn::mapping
