// The values of a graph that are made of constants alone.
#pragma once

#include <set>
#include <unordered_map>

#include "mapping/onnx/values/arrays.h"
#include "openrnn/formats_onnx.h"

namespace openrnn::mapping {

/// A value: elements of a file, of any alignment, or `kept` ones.
struct OnnxConstant {
  ConstArrayView view;
  Array kept;
};

/// The names of one graph, and of those that it lies in. Reads the graph as long as it lives.
class OnnxScope {
 public:
  /// `prefix` stands before the names of its tensors, as in a ModelFile.
  OnnxScope(const OnnxGraph& graph, std::string prefix, const OnnxScope* outer,
            MemoryBudget* budget);

  const OnnxGraph& graph() const { return graph_; }
  const std::string& prefix() const { return prefix_; }
  /// The value of that name if it is an initializer or a constant, or moved from such; `used` gets
  /// the names of the tensors. An initializer counts although it is an input, too.
  /// Throws: as compute_move.
  std::optional<Array> constant(const std::string& name, std::set<std::string>* used) const;
  /// The same, without a copy of an initializer: it lives as long as the model.
  std::optional<OnnxConstant> viewed(const std::string& name, std::set<std::string>* used) const;
  /// The node of this graph whose output it is; null if there is none.
  const OnnxNode* producer(const std::string& name) const;

 private:
  using Values = std::unordered_map<std::string, Array>;
  const OnnxTensor* initializer(const std::string& name) const;
  bool add_leaf(const std::string& name, std::set<std::string>* used, Values* values) const;
  bool collect(const std::string& name, std::set<std::size_t>* nodes, std::set<std::string>* used,
               Values* values) const;
  void compute(std::size_t node, std::set<std::string>* used, Values* values) const;

  const OnnxGraph& graph_;
  std::string prefix_;
  const OnnxScope* outer_;
  MemoryBudget* budget_;
  std::unordered_map<std::string_view, std::size_t> initializers_, producers_;
};

}  // namespace openrnn::mapping
