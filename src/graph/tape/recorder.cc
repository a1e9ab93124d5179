#include <algorithm>

#include "graph/tape/leaf_id.h"
#include "graph/tape/recording.h"

namespace openrnn::graph {
namespace {

bool is_placed(const Tensor& tensor) { return !tensor.empty() && tensor.placed(); }

std::shared_ptr<Node> make_node(std::string op, std::size_t num_outputs) {
  auto node = std::make_shared<Node>();
  node->id = next_id();
  node->op = std::move(op);
  node->num_outputs = num_outputs;
  return node;
}

}  // namespace

std::vector<Tensor> Recorder::record(std::string op, const std::vector<Tensor>& inputs,
                                     std::vector<DeviceArray> outputs, BackwardFunction backward,
                                     SelectiveBackward selective, GradientFunction gradient,
                                     RowFunction rows) {
  std::vector<Tensor> tensors;
  tensors.reserve(outputs.size());
  const bool placed = inputs.empty() || std::any_of(inputs.begin(), inputs.end(), is_placed);
  for (DeviceArray& output : outputs) {
    tensors.emplace_back(std::move(output));
    tensors.back().placed_ = placed;
  }
  if (!recording(inputs)) return tensors;
  const std::shared_ptr<Node> node = make_node(std::move(op), tensors.size());
  node->backward = std::move(backward);
  node->selective = std::move(selective);
  node->rows = std::move(rows);
  for (const Tensor& input : inputs) node->inputs.push_back(edge_of(input));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].node_ = node;
    tensors[i].output_index_ = i;
  }
  // Tensors know their node weakly, so nothing owns itself.
  if (OpenTapes::of_this_thread()->nested()) {
    node->history =
        std::make_shared<NodeHistory>(NodeHistory{inputs, tensors, std::move(gradient)});
  }
  OpenTapes::of_this_thread()->record(node);
  return tensors;
}

std::vector<Tensor> Recorder::refuse(const Node& from, const std::vector<Tensor>& others,
                                     std::vector<DeviceArray> outputs, std::string why) {
  const std::shared_ptr<Node> node = make_node(from.op + "_gradient", outputs.size());
  node->inputs = from.inputs;
  for (const Tensor& other : others) node->inputs.push_back(edge_of(other));
  node->backward = [why = std::move(why)](const auto&) -> std::vector<DeviceArray> {
    throw UnsupportedError(why);
  };
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    tensors.emplace_back(std::move(outputs[i]));
    if (tensors.back().empty()) continue;
    tensors.back().node_ = node;
    tensors.back().output_index_ = i;
  }
  OpenTapes::of_this_thread()->record(node);
  return tensors;
}

Edge Recorder::edge_of(const Tensor& tensor) {
  const std::shared_ptr<const Node> node = tensor.node();
  return {node ? node->id : 0, tensor.output_index_,
          tensor.wants_gradient_ ? tensor.leaf_id_ : std::uint64_t{0}};
}

}  // namespace openrnn::graph
