// One backward pass over what a tape recorded.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "graph/tape/listen.h"
#include "graph/tape/recording.h"

namespace openrnn::graph {

/// Where a target is: what delivers to it.
inline Edge edge_of(const Tensor& target) {
  const std::shared_ptr<const Node> node = target.node();
  return {node ? node->id : 0, target.output_index(), target.leaf_id()};
}

/// Gradients that are arrays.
struct ArrayRules {
  static constexpr bool kListens = true;
  template <class Wants>
  static std::vector<DeviceArray> run(const Node& node, const std::vector<DeviceArray>& outputs,
                                      const Wants& wants) {
    return node.selective ? node.selective(outputs, wants()) : node.backward(outputs);
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
};

/// The gradients at the nodes of a tape that lead to a source. `Rules` say how a gradient goes
/// through a node, run(node, output gradients, node's inputs that lead to a source), and how two
/// are added, add(sum, other).
template <class Value, class Rules>
class Sweep {
 public:
  using Values = std::vector<Value>;

  Sweep(Nodes nodes, const std::vector<std::uint64_t>& leaves) : nodes_(std::move(nodes)) {
    for (const std::uint64_t leaf : leaves) leaf_gradients_.try_emplace(leaf);
    // Nodes know their inputs only, so usefulness spreads from small ids to large ones.
    for (const auto& node : nodes_) {
      if (std::any_of(node->inputs.begin(), node->inputs.end(),
                      [this](const Edge& edge) { return wanted(edge); })) {
        pending_.try_emplace(node->id);
        for (const Edge& edge : node->inputs) expect(edge);
      }
    }
  }

  void add_target(const Tensor& target, const Value& gradient) {
    expect(edge_of(target));
    deliver(edge_of(target), gradient);
  }
  // What has come to an output of a node by other ways.
  void deliver(const Edge& edge, Value gradient) {
    if (gradient.empty()) return;
    const auto leaf = leaf_gradients_.find(edge.leaf_id);
    if (leaf != leaf_gradients_.end()) Rules::add(leaf->second, gradient);
    const auto node = pending_.find(edge.node_id);
    if (node == pending_.end()) return;
    Values& outputs = node->second;
    outputs.resize(std::max(outputs.size(), edge.output_index + 1));
    Rules::add(outputs[edge.output_index], std::move(gradient));
  }

  // Largest id first: the consumers of a node have run before it.
  void run() {
    // A pass inside of an operation's gives a part of a gradient.
    const Listening nobody(nullptr);
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) run_node(**node);
  }

  const Value& leaf(std::uint64_t id) const { return leaf_gradients_.at(id); }

 private:
  bool wanted(const Edge& edge) const {
    return leaf_gradients_.contains(edge.leaf_id) || pending_.contains(edge.node_id);
  }

  void run_node(const Node& node) {
    const auto found = pending_.find(node.id);
    if (found == pending_.end() || found->second.empty()) return;
    found->second.resize(node.num_outputs);
    const auto wants = [&] {
      std::vector<bool> all;
      for (const Edge& edge : node.inputs) all.push_back(wanted(edge));
      return all;
    };
    Values inputs;
    {
      const EarlyParts early(early_parts(node));
      inputs = Rules::run(node, std::exchange(found->second, {}), wants);
    }
    const std::size_t count = std::min(inputs.size(), node.inputs.size());
    for (std::size_t i = 0; i < count; ++i) deliver(node.inputs[i], std::move(inputs[i]));
    inputs.clear();
    for (const Edge& edge : node.inputs) tell(edge);
  }

  // A leaf's gradient is complete when all that were expected have come.
  void expect(const Edge& edge) {
    if (listener_ && leaf_gradients_.contains(edge.leaf_id)) ++expected_[edge.leaf_id];
  }
  void tell(const Edge& edge) {
    const auto left = expected_.find(edge.leaf_id);
    if (left == expected_.end() || --left->second > 0) return;
    if constexpr (Rules::kListens) {
      Value& gradient = leaf_gradients_.at(edge.leaf_id);
      if (!shared(gradient)) listener_->ready(edge.leaf_id, gradient, 0, gradient.size());
    }
  }
  std::vector<EarlyPart> early_parts(const Node& node) const {
    std::vector<EarlyPart> parts;
    if (!listener_) return parts;
    for (const Edge& edge : node.inputs) {
      const auto left = expected_.find(edge.leaf_id);
      const bool alone = left != expected_.end() && left->second == 1 && leaf(edge.leaf_id).empty();
      parts.push_back(alone ? EarlyPart{listener_, edge.leaf_id} : EarlyPart{});
    }
    return parts;
  }

  Nodes nodes_;
  GradientListener* const listener_ = Rules::kListens ? Listening::current() : nullptr;
  std::unordered_map<std::uint64_t, std::int64_t> expected_;  // of leaves, if there is a listener
  std::unordered_map<std::uint64_t, Value> leaf_gradients_;
  std::unordered_map<std::uint64_t, Values> pending_;  // of outputs, as far as there are any
};

/// Runs it from targets with a gradient each.
template <class Value, class Rules>
std::vector<Value> sweep(const Recording& recording, const std::vector<std::uint64_t>& leaves,
                         const std::vector<std::pair<Tensor, Value>>& targets) {
  Sweep<Value, Rules> pass(recording.nodes(), leaves);
  for (const auto& [target, gradient] : targets) pass.add_target(target, gradient);
  pass.run();
  std::vector<Value> result;
  result.reserve(leaves.size());
  for (const std::uint64_t leaf : leaves) result.push_back(pass.leaf(leaf));
  return result;
}

DeviceArray ones_like(const Tensor& target);
/// Throws: ArgumentError naming the first source that is none.
std::vector<std::uint64_t> leaf_ids(const std::vector<Tensor>& sources);
std::vector<std::uint64_t> leaf_ids(const std::vector<Variable>& sources);
/// Throws: ArgumentError unless it has the dtype and the shape of its target.
void check_output_gradient(const Tensor& target, DType dtype, const Shape& shape);

}  // namespace openrnn::graph
