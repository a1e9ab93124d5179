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

}  // namespace openrnn::cells
