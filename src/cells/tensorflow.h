// What TensorFlow 1's cells share.
#pragma once

#include "openrnn/cells.h"

namespace openrnn::cells {

/// What VariableCell takes of a cell's options.
template <class Options>
CompatibleCellOptions variables_of(const Options& options) {
  return {.num_units = options.num_units,
          .dtype = options.dtype,
          .kernel_initializer = options.kernel_initializer,
          .seed = options.seed,
          .name = options.name,
          .device = options.device,
          .reuse = options.reuse};
}

inline CellFunction or_tanh(const CellFunction& activation) {
  return activation ? activation : CellFunction(ops::tanh);
}

/// row [U] times each row of x [B, U].
inline Tensor scale_columns(const Tensor& x, const Tensor& row) {
  // Of a symbolic tensor only the shape matters.
  const Tensor zeros = x.is_symbolic()
                           ? ops::scale(x, 0.0)
                           : Tensor(DeviceArray::zeros(x.device(), x.dtype(), x.shape()));
  return ops::multiply(x, ops::add_row(zeros, row));
}

/// The blocks of U columns or elements of TensorFlow's order i j f o in the engine's, i f j o, as
/// rows of an opaque buffer.
inline std::vector<Tensor> in_gate_order(const std::vector<Tensor>& ijfo) {
  return {ijfo[0], ijfo[2], ijfo[1], ijfo[3]};
}

/// Weights [G U, I + O], rows by gate, and everything after them, as the opaque buffer of one
/// layer.
inline Tensor opaque_params(const Tensor& weights, std::int64_t outputs,
                            const std::vector<Tensor>& others) {
  const std::int64_t inputs = weights.shape()[1] - outputs;
  std::vector<Tensor> all = ops::split(weights, 1, {inputs, outputs});
  all.insert(all.end(), others.begin(), others.end());
  for (Tensor& each : all) each = ops::reshape(each, {-1});
  return ops::concat(all, 0);
}

}  // namespace openrnn::cells
