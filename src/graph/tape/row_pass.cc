#include "graph/tape/row_pass.h"

#include <algorithm>

#include "base/message.h"
#include "graph/tape/sweep.h"

namespace openrnn::graph {

RowPass::RowPass(std::string call, Nodes nodes, const std::vector<std::uint64_t>& leaves,
                 std::int64_t rows, OfRows only)
    : call_(std::move(call)), nodes_(std::move(nodes)), rows_(rows), only_(only) {
  for (const std::uint64_t leaf : leaves) leaves_.try_emplace(leaf);
  // Nodes know their inputs only, so usefulness spreads from small ids to large ones.
  for (const auto& node : nodes_) {
    for (const Edge& edge : node->inputs) {
      if (leaves_.contains(edge.leaf_id)) ++uses_[edge.leaf_id];
      if (leads(edge)) pending_.try_emplace(node->id);
    }
  }
}

void RowPass::run(const Edge& target, DeviceArray gradient, const RowsView& view) {
  if (leaves_.contains(target.leaf_id)) ++uses_[target.leaf_id];
  deliver(nullptr, target, {.gradient = std::move(gradient), .view = view, .shared = {}});
  // Largest id first: the consumers of a node have run before it.
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (!pending_.contains((*node)->id)) continue;
    run_node(**node);
    go_below(**node);
  }
}

bool RowPass::Pending::runs_by_row() const {
  return below || std::any_of(outputs.begin(), outputs.end(),
                              [](const RowGradients& each) { return !each.shared.empty(); });
}

OfRows RowPass::wish(const Pending& node, const Edge& edge) const {
  if (!leads(edge)) return OfRows::kNothing;
  if (node.runs_by_row()) return OfRows::kLater;
  const auto uses = uses_.find(edge.leaf_id);
  const bool alone = uses != uses_.end() && uses->second == 1;
  return alone && !pending_.contains(edge.node_id) ? only_ : OfRows::kLater;
}

void RowPass::run_node(const Node& node) {
  Pending& pending = pending_.at(node.id);
  std::vector<DeviceArray> gradients(node.num_outputs);
  std::vector<RowsView> views(node.num_outputs);
  bool any = false;
  for (std::size_t i = 0; i < pending.outputs.size(); ++i) {
    gradients[i] = std::move(pending.outputs[i].apart);
    views[i] = pending.outputs[i].view;
    any = any || !gradients[i].empty();
  }
  if (!any) return;
  if (!node.rows) {
    throw UnsupportedError(message("[", call_, "] '", node.op,
                                   "' does not say which row of a batch its gradient is of, ",
                                   "expected operations that do, and losses of rows"));
  }
  std::vector<bool> wanted;
  std::vector<OfRows> shared;
  for (const Edge& edge : node.inputs) {
    wanted.push_back(leads(edge));
    shared.push_back(wish(pending, edge));
  }
  std::vector<RowGradient> found = node.rows(node, {.rows = rows_,
                                                    .output_gradients = gradients,
                                                    .views = views,
                                                    .wanted = wanted,
                                                    .shared = shared});
  const std::size_t count = std::min(found.size(), node.inputs.size());
  for (std::size_t i = 0; i < count; ++i) deliver(&node, node.inputs[i], std::move(found[i]));
}

// What comes to this node by something shared goes on to its inputs.
void RowPass::go_below(const Node& node) {
  if (!pending_.at(node.id).runs_by_row()) return;
  for (const Edge& edge : node.inputs) {
    if (leaves_.contains(edge.leaf_id)) below_leaves_.insert(edge.leaf_id);
    const auto next = pending_.find(edge.node_id);
    if (next != pending_.end()) next->second.below = true;
  }
}

void RowPass::add(const Node* from, RowGradients& sum, RowGradient gradient) const {
  if (gradient.shared.of_rows || !gradient.shared.squares.empty()) {
    sum.shared.push_back(std::move(gradient.shared));
  }
  if (gradient.gradient.empty()) return;
  if (!sum.apart.empty() && !(sum.view == gradient.view)) {
    throw UnsupportedError(message("[", call_, "] rows of the batch meet in ",
                                   from ? message("an input of '", from->op, "'") : "the target",
                                   ", expected rows that are apart from the losses down"));
  }
  sum.view = gradient.view;
  ArrayRules::add(sum.apart, std::move(gradient.gradient));
}

void RowPass::deliver(const Node* from, const Edge& edge, RowGradient gradient) {
  const auto leaf = leaves_.find(edge.leaf_id);
  if (leaf != leaves_.end()) add(from, leaf->second, gradient);
  const auto node = pending_.find(edge.node_id);
  if (node == pending_.end()) return;
  std::vector<RowGradients>& outputs = node->second.outputs;
  outputs.resize(std::max(outputs.size(), edge.output_index + 1));
  add(from, outputs[edge.output_index], std::move(gradient));
}

std::vector<RowPass::Shared> RowPass::shared() const {
  std::vector<Shared> all;
  for (const auto& node : nodes_) {
    const auto found = pending_.find(node->id);
    if (found == pending_.end()) continue;
    for (std::size_t i = 0; i < found->second.outputs.size(); ++i) {
      const RowGradients& output = found->second.outputs[i];
      if (!output.shared.empty()) all.push_back({{node->id, i, 0}, output.shared});
    }
  }
  return all;
}

}  // namespace openrnn::graph
