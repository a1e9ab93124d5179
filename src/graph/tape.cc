#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/message.h"
#include "graph/leaf_id.h"
#include "graph/open_tapes.h"
#include "openrnn/graph.h"

namespace openrnn {
namespace {

using Gradients = std::vector<DeviceArray>;

// One call of gradient: the nodes that lead from the targets to the sources, and what reached them.
class Sweep {
 public:
  explicit Sweep(const std::vector<std::uint64_t>& leaves) {
    for (const std::uint64_t leaf : leaves) leaf_gradients_.try_emplace(leaf);
  }

  void add_target(const Tensor& target, const DeviceArray& gradient) {
    if (target.node()) collect(target.node());
    seeds_.emplace_back(
        Edge{target.node(), target.output_index(), target.tracked() ? target.leaf_id() : 0},
        gradient);
  }

  void run() {
    // Nodes know their inputs only, so usefulness spreads from small ids to large ones.
    std::sort(nodes_.begin(), nodes_.end(),
              [](const Node* a, const Node* b) { return a->id < b->id; });
    for (const Node* node : nodes_) {
      if (std::any_of(node->inputs.begin(), node->inputs.end(),
                      [this](const Edge& edge) { return wanted(edge); })) {
        pending_.try_emplace(node, Gradients(node->num_outputs));
      }
    }
    for (auto& [edge, gradient] : seeds_) deliver(edge, std::move(gradient));
    // Largest id first: whatever feeds on a node has run before it.
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) run_node(**node);
  }

  const DeviceArray& leaf(std::uint64_t id) const { return leaf_gradients_.at(id); }

 private:
  void collect(const std::shared_ptr<const Node>& from) {
    std::vector<const Node*> waiting{from.get()};
    while (!waiting.empty()) {
      const Node* node = waiting.back();
      waiting.pop_back();
      if (!seen_.insert(node).second) continue;
      nodes_.push_back(node);
      for (const Edge& edge : node->inputs) {
        if (edge.node) waiting.push_back(edge.node.get());
      }
    }
  }

  bool wanted(const Edge& edge) const {
    return (edge.leaf_id != 0 && leaf_gradients_.contains(edge.leaf_id)) ||
           (edge.node && pending_.contains(edge.node.get()));
  }

  void run_node(const Node& node) {
    const auto found = pending_.find(&node);
    if (found == pending_.end()) return;
    const Gradients outputs = std::move(found->second);
    found->second.clear();
    if (std::all_of(outputs.begin(), outputs.end(),
                    [](const DeviceArray& gradient) { return gradient.empty(); })) {
      return;
    }
    Gradients inputs = node.backward(outputs);
    const std::size_t count = std::min(inputs.size(), node.inputs.size());
    for (std::size_t i = 0; i < count; ++i) deliver(node.inputs[i], std::move(inputs[i]));
  }

  void deliver(const Edge& edge, DeviceArray gradient) {
    if (gradient.empty()) return;
    if (edge.leaf_id != 0) {
      const auto leaf = leaf_gradients_.find(edge.leaf_id);
      if (leaf != leaf_gradients_.end()) add(leaf->second, gradient);
    }
    if (!edge.node) return;
    const auto node = pending_.find(edge.node.get());
    if (node != pending_.end()) add(node->second[edge.output_index], std::move(gradient));
  }

  // The first arrival is kept as it is, perhaps shared; a second one makes a copy first.
  static void add(DeviceArray& sum, DeviceArray gradient) {
    if (sum.empty()) {
      sum = std::move(gradient);
      return;
    }
    sum.make_unique_owner();
    sum.device().accumulate(sum.dtype(), sum.size(), gradient.data(), sum.mutable_data());
  }

  std::unordered_map<std::uint64_t, DeviceArray> leaf_gradients_;
  std::unordered_map<const Node*, Gradients> pending_;
  std::unordered_set<const Node*> seen_;
  std::vector<const Node*> nodes_;
  std::vector<std::pair<Edge, DeviceArray>> seeds_;
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

Gradients sweep_leaves(const std::vector<Tensor>& targets, const std::vector<std::uint64_t>& leaves,
                       const Gradients& given) {
  if (!given.empty() && given.size() != targets.size()) {
    throw ArgumentError(message("[gradient] ", given.size(), " output gradients, expected ",
                                targets.size(), ", one a target"));
  }
  if (std::none_of(targets.begin(), targets.end(),
                   [](const Tensor& target) { return target.tracked(); })) {
    throw StateError(
        "[gradient] the target has no history, expected one computed from watched tensors or "
        "trainable variables while a GradientTape was open");
  }
  Sweep sweep(leaves);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].empty()) continue;
    sweep.add_target(targets[i],
                     seed_gradient(targets[i], given.empty() ? DeviceArray() : given[i]));
  }
  sweep.run();
  Gradients result;
  result.reserve(leaves.size());
  for (const std::uint64_t leaf : leaves) result.push_back(sweep.leaf(leaf));
  return result;
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

GradientTape::GradientTape() : open_tapes_(graph::open_tapes()) { ++*open_tapes_; }

GradientTape::~GradientTape() { close(); }

void GradientTape::close() noexcept {
  if (open_tapes_) --*open_tapes_;
  open_tapes_.reset();
}

Tensor GradientTape::watch(const Tensor& tensor) const {
  if (tensor.empty()) {
    throw ArgumentError("[watch] the tensor is empty, expected one with a value");
  }
  Tensor leaf = tensor;
  leaf.leaf_id_ = graph::next_id();
  leaf.version_ = 0;
  leaf.wants_gradient_ = true;
  return leaf;
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                 const DeviceArray& output_gradient) const {
  return sweep_leaves({target}, leaf_ids(sources), {output_gradient});
}

Gradients GradientTape::gradient(const Tensor& target, const std::vector<Variable>& sources,
                                 const DeviceArray& output_gradient) const {
  std::vector<std::uint64_t> ids;
  for (const Variable& source : sources) ids.push_back(source.leaf_id());
  return sweep_leaves({target}, ids, {output_gradient});
}

Gradients GradientTape::gradient(const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& sources,
                                 const std::vector<DeviceArray>& output_gradients) const {
  return sweep_leaves(targets, leaf_ids(sources), output_gradients);
}

}  // namespace openrnn
