// RNN, LSTM and GRU by the engines.
#pragma once

#include "mapping/onnx/cell.h"
#include "onnx/kernel.h"
#include "openrnn/runtime.h"

namespace openrnn::onnx {

/// A recurrent node of a program.
class RecurrentKernel {
 public:
  /// Throws: UnsupportedError naming the node for attributes that no network has.
  explicit RecurrentKernel(const OnnxNode& node);
  /// Packs the weights once; without it each call does. Throws: as params_of_node.
  void pack(const mapping::OnnxWeights& weights);
  std::vector<Array> compute(const KernelCall& call) const;

 private:
  struct Packed {
    mapping::OnnxCell cell;
    std::shared_ptr<const PackedModel> model;
  };
  std::vector<Packed> packed(const OnnxNode& node, const mapping::OnnxWeights& weights) const;

  const OnnxNode* node_;
  // Two where the directions have functions of their own.
  std::vector<mapping::OnnxCell> cells_;
  std::vector<Packed> packed_;
};

/// The weights among the inputs of a recurrent node.
mapping::OnnxWeights weights_of(const KernelCall& call);

}  // namespace openrnn::onnx
