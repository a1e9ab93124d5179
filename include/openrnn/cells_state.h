// What recurrent cells take and give: states, results, overrides.
#pragma once

#include "openrnn/ops.h"

namespace openrnn {

/// The tensors of a cell's state, each [B, size]: lstm (c, h), gru and basic (h), a stack of cells
/// those of its cells one after another.
using CellState = std::vector<Tensor>;

/// Result of one step.
struct CellResult {
  Tensor output;  // [B, output_size]
  CellState state;
};

/// One tensor of a cell's state.
struct CellStatePart {
  std::int64_t size = 0;
  /// Dropout must leave it alone: c of an lstm.
  bool memory = false;
};

/// What a loop of a cell computes, as a network of one layer and one direction, and its parameters
/// made of the cell's variables.
struct CellNetwork {
  RnnSpec spec;
  Tensor params;
};

/// Functions of a cell that a subclass in another language overrides; an empty one overrides
/// nothing.
struct CellOverrides {
  /// A step, inside the cell's scope; it may call RnnCell::run_class.
  std::function<CellResult(const Tensor& inputs, const CellState& state)> step = {};
  /// The whole call, including what surrounds the step; it may call RnnCell::run_step.
  std::function<CellResult(const Tensor& inputs, const CellState& state, const std::string& scope)>
      call = {};
  std::function<CellState(std::int64_t batch_size, DType dtype)> zero_state = {};
  std::function<std::vector<CellStatePart>()> state = {};
  std::function<std::int64_t()> output_size = {};
};

}  // namespace openrnn
