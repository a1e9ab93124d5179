// The calls of a layer on symbolic tensors.
#include <algorithm>

#include "base/message.h"
#include "graph/scope_stack.h"
#include "graph/symbolic/share.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

// With its layer, if that still exists.
Tensor handed_out(const Tensor& tensor) {
  if (!tensor.is_symbolic() || tensor.symbol()->owner) return tensor;
  const std::shared_ptr<const SymbolicCall>& call = tensor.symbol()->call;
  const Layer* const layer = call->layer ? call->layer->layer : nullptr;
  if (!layer) return tensor;
  return Tensor(std::make_shared<const Symbol>(
      Symbol{call, tensor.symbol()->index, layer->weak_from_this().lock()}));
}

std::vector<Shape> shapes_of(const std::vector<Tensor>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

std::vector<Shape> shapes_of(const std::vector<TensorSpec>& specs) {
  std::vector<Shape> shapes;
  for (const TensorSpec& spec : specs) shapes.push_back(spec.shape);
  return shapes;
}

}  // namespace

std::vector<Tensor> Layer::compute_call(const Attributes&, const std::vector<Tensor>&,
                                        const Replay&) {
  throw StateError(message("[", name_, "] its class computes nothing by itself"));
}

std::vector<Tensor> Layer::replay_call(const LayerCall& call, const std::vector<Tensor>& inputs,
                                       const Replay& replay) {
  if (!call.function) return compute_call(call.attributes, inputs, replay);
  const PartOfCall part(*this);
  // The scope is one of the layer's graph, whatever is current by now.
  std::optional<Graph::AsDefault> own_graph;
  if (graph_ && graph_ != &Graph::current()) own_graph.emplace(graph());
  const bool reuse = reuse_ || VariableScope::current_reuse();
  const std::size_t before = weights_.size();
  const graph::ReopenedScope scope(scope_name_, reuse, &weights_);
  std::vector<Tensor> outputs = call.function(inputs, replay);
  for (std::size_t i = before; i < weights_.size(); ++i) weights_[i].belong_to(trainable_);
  return outputs;
}

std::vector<Tensor> Layer::record_node(const std::vector<Tensor>& inputs,
                                       std::vector<TensorSpec> outputs, const LayerCall& recorded) {
  const std::shared_ptr<const LayerHandle> handle = handle_;
  const ReplayFunction guarded = [handle, name = name_, recorded](const std::vector<Tensor>& values,
                                                                  const Replay& replay) {
    if (!handle->layer) {
      throw StateError(message("[Model] the layer '", name,
                               "' is gone, expected it to outlive the tensors that it made (one "
                               "made by std::make_shared does)"));
    }
    const Replay asked{replay.training ? replay.training : recorded.training};
    if (!any_symbolic(values)) {
      handle->layer->replayed_ = true;
      const DuringCall during(*handle->layer, Added::kReplayed);
      return handle->layer->replay_call(recorded, values, asked);
    }
    const DuringCall during(*handle->layer, Added::kRecorded);
    std::vector<Tensor> results = handle->layer->replay_call(recorded, values, asked);
    // A replay on symbolic tensors: what it made says the shapes, the call stays a node.
    LayerCall again = recorded;
    again.training = asked.training;
    std::vector<TensorSpec> specs;
    for (const Tensor& result : results) specs.push_back({result.dtype(), result.shape()});
    return handle->layer->record_node(values, std::move(specs), again);
  };
  const auto attributes = recorded.copies ? std::optional(recorded.attributes) : std::nullopt;
  std::vector<Tensor> made = graph::record_call({.op = name_,
                                                 .inputs = inputs,
                                                 .outputs = std::move(outputs),
                                                 .run = guarded,
                                                 .attributes = attributes,
                                                 .function = recorded.function,
                                                 .training = recorded.training,
                                                 .layer = part_of_call() ? nullptr : handle,
                                                 .computed_by = handle},
                                                weak_from_this().lock());
  if (part_of_call()) return made;
  const std::shared_ptr<const SymbolicCall>& call = made.front().symbol()->call;
  inbound_nodes_.push_back(call);
  for (const Tensor& input : call->inputs) {
    if (!input.is_symbolic() || !input.symbol()->call->layer) continue;
    Layer* const source = input.symbol()->call->layer->layer;
    if (source) source->outbound_nodes_.push_back(call);
  }
  return made;
}

std::vector<Tensor> Layer::run_call(const std::vector<Tensor>& inputs,
                                    const std::vector<TensorSpec>& outputs,
                                    const Attributes& call) {
  begin_call(inputs);
  std::vector<Tensor> results;
  if (any_symbolic(inputs)) {
    results = record_node(inputs, outputs, {call});
  } else {
    const DuringCall during(*this, Added::kCall);
    results = compute_call(call, inputs, Replay{});
  }
  end_call(inputs, results);
  return results;
}

std::vector<Tensor> Layer::record_again(const SymbolicCall& call) {
  std::optional<PartOfCall> part;
  if (!call.layer) part.emplace(*this);
  return record_node(call.inputs, call.outputs,
                     {.attributes = call.attributes.value_or(Attributes{}),
                      .function = call.function,
                      .training = call.training});
}

std::vector<Tensor> Layer::call_as(const std::vector<Tensor>& inputs, const ReplayFunction& call,
                                   const std::string& scope) {
  build_or_undo(inputs.empty() ? Shape{} : inputs[0].shape(), scope, false);
  begin_call(inputs);
  const LayerCall recorded{.function = call};
  const bool symbolic = any_symbolic(inputs);
  std::vector<Tensor> outputs;
  {
    const DuringCall during(*this, symbolic ? Added::kRecorded : Added::kCall);
    outputs = replay_call(recorded, inputs, Replay{});
  }
  if (outputs.empty()) {
    throw ArgumentError(message("[", name_, "] call() returned no tensor, expected at least one"));
  }
  if (symbolic) {
    // The call itself is the node: what it recorded inside is only asked for shapes.
    std::vector<TensorSpec> specs;
    for (const Tensor& output : outputs) specs.push_back({output.dtype(), output.shape()});
    outputs = record_node(inputs, std::move(specs), recorded);
  }
  end_call(inputs, outputs);
  return outputs;
}

Layer::NodeList Layer::outbound_nodes() const {
  NodeList nodes;
  for (const auto& weak : outbound_nodes_) {
    const auto node = weak.lock();
    // A call that takes two outputs of this layer is one node.
    if (node && std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return nodes;
}

void Layer::require_node(const char* what) const {
  if (!inbound_nodes_.empty()) return;
  throw NotConnectedError(message("[", what, "] the layer '", name_,
                                  "' is not connected: it has no inbound nodes as it has never ",
                                  "been called on a symbolic tensor, expected a call on an Input"));
}

const SymbolicCall& Layer::node_at(const char* call, std::int64_t index) const {
  if (inbound_nodes_.empty()) {
    throw StateError(message("[", call, "] the layer '", name_,
                             "' has never been called on a symbolic tensor and has no node, "
                             "expected a call on an Input before"));
  }
  const auto count = static_cast<std::int64_t>(inbound_nodes_.size());
  if (index < 0 || index >= count) {
    throw ArgumentError(message("[", call, "] node_index is ", index, ", expected 0 to ", count - 1,
                                " as the layer '", name_, "' has ", count, " inbound nodes"));
  }
  return *inbound_nodes_[static_cast<std::size_t>(index)];
}

std::vector<Tensor> Layer::input() const { return require_node("input"), get_input_at(0); }
std::vector<Tensor> Layer::output() const { return require_node("output"), get_output_at(0); }

std::vector<Tensor> Layer::get_input_at(std::int64_t node_index) const {
  std::vector<Tensor> inputs = node_at("get_input_at", node_index).inputs;
  for (Tensor& input : inputs) input = handed_out(input);
  return inputs;
}

std::vector<Tensor> Layer::get_output_at(std::int64_t node_index) const {
  node_at("get_output_at", node_index);
  // Nodes hold no outputs, which own the layer: that would be a cycle.
  const std::shared_ptr<const Layer> owner = weak_from_this().lock();
  return graph::outputs_of(inbound_nodes_[static_cast<std::size_t>(node_index)], owner);
}

std::vector<Shape> Layer::get_input_shape_at(std::int64_t node_index) const {
  return shapes_of(node_at("get_input_shape_at", node_index).inputs);
}

std::vector<Shape> Layer::get_output_shape_at(std::int64_t node_index) const {
  return shapes_of(node_at("get_output_shape_at", node_index).outputs);
}

std::vector<Shape> Layer::input_shape() const {
  require_node("input_shape");
  std::vector<Shape> shapes = shapes_of(inbound_nodes_[0]->inputs);
  for (const auto& node : inbound_nodes_) {
    if (shapes_of(node->inputs) == shapes) continue;
    throw NotConnectedError(message("[input_shape] the layer '", name_, "' has ",
                                    inbound_nodes_.size(), " inbound nodes of different input ",
                                    "shapes, expected one; ask get_input_shape_at(node_index)"));
  }
  return shapes;
}

std::vector<Shape> Layer::output_shape() const {
  require_node("output_shape");
  std::vector<Shape> shapes = shapes_of(inbound_nodes_[0]->outputs);
  for (const auto& node : inbound_nodes_) {
    if (shapes_of(node->outputs) == shapes) continue;
    throw NotConnectedError(message("[output_shape] the layer '", name_, "' has ",
                                    inbound_nodes_.size(), " inbound nodes of different output ",
                                    "shapes, expected one; ask get_output_shape_at(node_index)"));
  }
  return shapes;
}

Tensor Layer::input_mask() const { return require_node("input_mask"), Tensor(); }
Tensor Layer::output_mask() const { return require_node("output_mask"), Tensor(); }

Tensor Layer::get_input_mask_at(std::int64_t node_index) const {
  return node_at("get_input_mask_at", node_index), Tensor();
}

Tensor Layer::get_output_mask_at(std::int64_t node_index) const {
  return node_at("get_output_mask_at", node_index), Tensor();
}

}  // namespace openrnn
