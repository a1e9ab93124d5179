// Gradients of each row's own loss, and what operations know of the rows of a batch for them.
//
// The loss of row b is the sum of the elements of a target at b along an axis: of losses [B], or
// [T, B] with axis 1. GradientTape::per_sample_norms takes about the time of a gradient, and memory
// for a few rows' gradients, not for all; squares are summed in double. The sum over the rows of
// per_sample_gradients, [B, shape of the source..], is gradient(), up to rounding; empty where none
// flows. Both are on the cpu only, and throw as gradient(); ArgumentError for an axis that the
// target does not have, UnsupportedError naming an operation through which the rows cannot be told
// apart.
#pragma once

#include "openrnn/graph.h"

namespace openrnn {

/// Where the rows of a batch lie in a dense array: it is [outer, rows, inner] under other
/// dimensions.
struct RowsView {
  std::int64_t outer = 1, rows = 1, inner = 1;

  /// Rows along one dimension of an array of that shape.
  static RowsView along(const Shape& shape, std::size_t axis) {
    RowsView view{.rows = shape[axis]};
    for (std::size_t i = 0; i < axis; ++i) view.outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.size(); ++i) view.inner *= shape[i];
    return view;
  }
  std::int64_t size() const { return outer * rows * inner; }
  /// Whether each element is of the same row in both; a single row has all.
  bool operator==(const RowsView& other) const {
    if (rows != other.rows || size() != other.size()) return false;
    return rows == 1 || inner == other.inner;
  }
};

/// What is wanted of the gradients by an input that all rows share.
enum class OfRows : std::uint8_t {
  kNothing,
  kLater,    // SharedGradient::of_rows, of some rows at a time
  kSquares,  // SharedGradient::squares
  kAll       // of_rows, once, of all
};

/// The gradients of the losses of all rows, each by the whole of what they share.
struct SharedGradient {
  /// Of rows [first, last): [last - first, shape..]. Where kLater or kAll is wanted.
  std::function<DeviceArray(std::int64_t first, std::int64_t last)> of_rows;
  /// The squared 2-norm of each row's. Where kSquares is wanted.
  std::vector<double> squares;
};

/// By one input of an operation. Either the losses of each row depend on its own elements of the
/// input alone: one array then holds the gradients of all, seen as `view`. Or on any: `shared`.
struct RowGradient {
  DeviceArray gradient;
  RowsView view;
  SharedGradient shared;
};

/// One call of a recorded operation, for the gradients of rows.
struct RowCall {
  std::int64_t rows = 0;
  const std::vector<DeviceArray>& output_gradients;  // empty: zero
  const std::vector<RowsView>& views;                // of each that is not empty
  const std::vector<bool>& wanted;                   // whether the gradient of an input is used
  const std::vector<OfRows>& shared;                 // of each input, if its gradient is shared
};

}  // namespace openrnn
