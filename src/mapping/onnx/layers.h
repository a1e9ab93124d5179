// The recurrent nodes of one graph: each a layer, chained ones as one network.
#pragma once

#include "mapping/onnx/cell.h"
#include "mapping/onnx/values/scope.h"
#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The weights of a node.
struct OnnxInputs {
  OnnxConstant w, r;
  std::optional<OnnxConstant> b = {}, p = {};
  OnnxWeightViews views() const;
};

/// A recurrent node whose weights are constants.
struct OnnxLayer {
  const OnnxNode* node = nullptr;
  OnnxCell cell;
  OnnxInputs weights;
  /// [D, U], where the node begins with constants other than 0.
  std::optional<Array> initial_h = {}, initial_c = {};
  std::set<std::string> tensors = {};
};

/// Throws: UnsupportedError naming the node; ArgumentError for constants that do not fit together.
OnnxLayer layer_of_node(const OnnxNode& node, const OnnxScope& scope);

/// Layers where each takes the output of the one before, in the order of the graph.
std::vector<std::vector<OnnxLayer>> stacks_of(std::vector<OnnxLayer> layers,
                                              const OnnxScope& scope);

MappedNetwork network_of(const std::vector<OnnxLayer>& stack, const std::string& prefix);

}  // namespace openrnn::mapping
