// One backward pass that keeps the gradients of the rows of a batch apart.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "graph/tape/recording.h"
#include "openrnn/graph_rows.h"

namespace openrnn::graph {

/// What has come to a source, or to an output of a node.
struct RowGradients {
  /// An array in which each row has its own place; empty: none.
  DeviceArray apart;
  RowsView view;
  /// Of what all rows share.
  std::vector<SharedGradient> shared;
  bool empty() const { return apart.empty() && shared.empty(); }
};

/// From losses of rows down to the sources, and to what all rows share. Below an input that they
/// share, rows can only be told apart by going on with one at a time: such inputs are collected.
class RowPass {
 public:
  struct Shared {
    Edge edge;
    std::vector<SharedGradient> gradients;
  };

  /// `only` is asked of the gradient by a source that nothing else leads to: kSquares or kAll.
  RowPass(std::string call, Nodes nodes, const std::vector<std::uint64_t>& leaves,
          std::int64_t rows, OfRows only);

  /// `gradient` of the target has each row in its own place. Throws: UnsupportedError naming an
  /// operation that does not know of rows.
  void run(const Edge& target, DeviceArray gradient, const RowsView& view);

  const RowGradients& leaf(std::uint64_t id) const { return leaves_.at(id); }
  /// Outputs of nodes that all rows share.
  std::vector<Shared> shared() const;
  /// Whether what is shared() leads to that source, too.
  bool goes_on_to(std::uint64_t leaf) const { return below_leaves_.contains(leaf); }
  const Nodes& nodes() const { return nodes_; }

 private:
  struct Pending {
    std::vector<RowGradients> outputs;
    bool below = false;  // what is shared leads to it

    /// Whether it is run again for each row, as what is shared leads to it or is its output.
    bool runs_by_row() const;
  };

  bool leads(const Edge& edge) const {
    return leaves_.contains(edge.leaf_id) || pending_.contains(edge.node_id);
  }
  OfRows wish(const Pending& node, const Edge& edge) const;
  void run_node(const Node& node);
  void go_below(const Node& node);
  void deliver(const Node* from, const Edge& edge, RowGradient gradient);
  void add(const Node* from, RowGradients& sum, RowGradient gradient) const;

  std::string call_;
  Nodes nodes_;
  std::int64_t rows_;
  OfRows only_;
  std::unordered_map<std::uint64_t, RowGradients> leaves_;
  std::unordered_map<std::uint64_t, std::int64_t> uses_;  // of leaves, by nodes that lead to one
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::unordered_set<std::uint64_t> below_leaves_;
};

}  // namespace openrnn::graph
