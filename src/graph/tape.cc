#include <algorithm>
#include <unordered_map>

#include "base/message.h"
#include "graph/leaf_id.h"
#include "graph/recording.h"

namespace openrnn {
namespace {

using Gradients = std::vector<DeviceArray>;

// One backward pass: the gradients at the nodes of a tape that lead to a source.
class Sweep {
 public:
  Sweep(graph::Nodes nodes, const std::vector<std::uint64_t>& leaves) : nodes_(std::move(nodes)) {
    for (const std::uint64_t leaf : leaves) leaf_gradients_.try_emplace(leaf);
    // Nodes know their inputs only, so usefulness spreads from small ids to large ones.
    for (const auto& node : nodes_) {
      if (std::any_of(node->inputs.begin(), node->inputs.end(),
                      [this](const Edge& edge) { return wanted(edge); })) {
        pending_.try_emplace(node->id);
      }
    }
  }

  void add_target(const Tensor& target, const DeviceArray& gradient) {
    const std::shared_ptr<const Node> node = target.node();
    deliver({node ? node->id : 0, target.output_index(), target.leaf_id()}, gradient);
  }

  // Largest id first: the consumers of a node have run before it.
  void run() {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) run_node(**node);
  }

  const DeviceArray& leaf(std::uint64_t id) const { return leaf_gradients_.at(id); }

 private:
  bool wanted(const Edge& edge) const {
    return leaf_gradients_.contains(edge.leaf_id) || pending_.contains(edge.node_id);
  }

  void run_node(const Node& node) {
    const auto found = pending_.find(node.id);
    if (found == pending_.end() || found->second.empty()) return;
    found->second.resize(node.num_outputs);
    Gradients inputs = node.backward(std::exchange(found->second, {}));
    const std::size_t count = std::min(inputs.size(), node.inputs.size());
    for (std::size_t i = 0; i < count; ++i) deliver(node.inputs[i], std::move(inputs[i]));
  }

  void deliver(const Edge& edge, DeviceArray gradient) {
    if (gradient.empty()) return;
    const auto leaf = leaf_gradients_.find(edge.leaf_id);
    if (leaf != leaf_gradients_.end()) add(leaf->second, gradient);
    const auto node = pending_.find(edge.node_id);
    if (node == pending_.end()) return;
    Gradients& outputs = node->second;
    outputs.resize(std::max(outputs.size(), edge.output_index + 1));
    add(outputs[edge.output_index], std::move(gradient));
  }

  // The first gradient is kept as it is, perhaps shared; a second one makes a copy first.
  static void add(DeviceArray& sum, DeviceArray gradient) {
    if (sum.empty()) {
      sum = std::move(gradient);
      return;
    }
    sum.make_unique_owner();
    sum.device().accumulate(sum.dtype(), sum.size(), gradient.data(), sum.mutable_data());
  }

  graph::Nodes nodes_;
  std::unordered_map<std::uint64_t, DeviceArray> leaf_gradients_;
  std::unordered_map<std::uint64_t, Gradients> pending_;  // of outputs, as far as there are any
};

DeviceArray ones_like(const Tensor& target) {
  DeviceArray ones(target.value().device(), target.dtype(), target.shape());
  ones.device().fill(ones.dtype(), ones.size(), 1.0, ones.dtype(), nullptr, ones.mutable_data());
  return ones;
}

DeviceArray seed_gradient(const Tensor& target, const DeviceArray& given) {
  if (given.empty()) return ones_like(target);
  if (given.shape() != target.shape() || given.dtype() != target.dtype()) {
    throw ArgumentError(message("[gradient] an output gradient is ", dtype_name(given.dtype()),
                                " of shape ", to_string(given.shape()), ", expected ",
                                dtype_name(target.dtype()), " of shape ", to_string(target.shape()),
                                " as its target"));
  }
  return on_device(given, target.device());
}

std::vector<std::uint64_t> leaf_ids(const std::vector<Tensor>& sources) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].leaf_id() == 0) {
      throw ArgumentError(message("[gradient] sources[", i,
                                  "] is no leaf, expected a tensor from watch() or a variable"));
    }
    ids.push_back(sources[i].leaf_id());
  }
  return ids;
}

}  // namespace

GradientTape::GradientTape()
    : open_(graph::OpenTapes::of_this_thread()), recording_(std::make_shared<graph::Recording>()) {
  open_->open(recording_);
}

GradientTape::~GradientTape() { close(); }

void GradientTape::close() noexcept {
  if (open_) open_->close(*recording_);
  open_.reset();
}

bool GradientTape::holds(const Tensor& target) const {
  const std::shared_ptr<const Node> node = target.node();
  return target.wants_gradient_ || (node && recording_->holds(*node));
}

Tensor GradientTape::watch(const Tensor& tensor) const {
  if (tensor.empty()) {
    throw ArgumentError("[watch] the tensor is empty, expected one with a value");
  }
  // What was computed from it before must go on counting.
  if (tensor.leaf_id_ != 0 && tensor.wants_gradient_) return tensor;
  Tensor leaf = tensor;
  leaf.leaf_id_ = graph::next_id();
  leaf.version_ = 0;
  leaf.wants_gradient_ = true;
  return leaf;
}

Gradients GradientTape::of_leaves(const std::vector<Tensor>& targets,
                                  const std::vector<std::uint64_t>& leaves,
                                  const Gradients& given) const {
  if (!given.empty() && given.size() != targets.size()) {
    throw ArgumentError(message("[gradient] ", given.size(), " output gradients, expected ",
                                targets.size(), ", one a target"));
  }
  if (std::none_of(targets.begin(), targets.end(),
                   [this](const Tensor& target) { return holds(target); })) {
    throw StateError(
        "[gradient] the target has no history on this tape, expected one computed from watched "
        "tensors or trainable variables while it was open");
  }
  Sweep sweep(recording_->nodes(), leaves);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!holds(targets[i])) continue;
    sweep.add_target(targets[i],
                     seed_gradient(targets[i], given.empty() ? DeviceArray() : given[i]));
  }
  sweep.run();
  Gradients result;
  result.reserve(leaves.size());
  for (const std::uint64_t leaf : leaves) result.push_back(sweep.leaf(leaf));
  return result;
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                 const DeviceArray& output_gradient) const {
  return of_leaves({target}, leaf_ids(sources), {output_gradient});
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const DeviceArray& output_gradient) const {
  std::vector<std::uint64_t> ids;
  for (const Variable& source : sources) ids.push_back(source.leaf_id());
  return of_leaves({target}, ids, {output_gradient});
}

Gradients GradientTape::gradient(const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& sources,
                                 const std::vector<DeviceArray>& output_gradients) const {
  return of_leaves(targets, leaf_ids(sources), output_gradients);
}

}  // namespace openrnn
