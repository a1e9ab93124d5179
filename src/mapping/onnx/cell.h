// A node RNN, LSTM or GRU as one layer of a network.
#pragma once

#include "mapping/onnx/weights.h"
#include "openrnn/formats_onnx.h"

namespace openrnn::mapping {

struct OnnxCell {
  /// One layer. Sizes, dtype, biases and peepholes are those of the weights.
  RnnSpec spec;
  /// The only direction walks from the last step to the first.
  bool reverse = false;
  /// x [B, T, I], y [B, T, D, U], states [B, D, U]; else [T, B, I], [T, B, D, U] and [D, B, U].
  bool batch_major = false;
  /// Which direction of a bidirectional node it is, where its functions are its own.
  std::optional<std::int64_t> part = {};
};

/// What the attributes say. Throws: UnsupportedError naming the node and what a network cannot
/// hold, such as functions that differ between the directions.
OnnxCell cell_of_node(const OnnxNode& node);
/// The same for what runs a node: where the functions differ between the directions, a cell of
/// each, forward first. Throws: as cell_of_node.
std::vector<OnnxCell> cells_of_node(const OnnxNode& node);

/// The weights are those of the node. Sets what only they say.
/// Throws: UnsupportedError naming the node for shapes and dtypes that do not fit.
void set_weights(const OnnxNode& node, const OnnxWeightViews& weights, OnnxCell* cell);
/// The same, of the weights of the cell's direction where it is one of two; gives the opaque
/// buffer.
Array params_of_node(const OnnxNode& node, const OnnxWeightViews& weights, OnnxCell* cell);

/// A float as the double of its shortest decimal form: 0.1f is 0.1, so that numbers go through a
/// file unchanged.
double decimal_of(float value);

}  // namespace openrnn::mapping
