// The one table of facts: Keras's arrays of a cell as parts of the opaque buffer.
#pragma once

#include <span>
#include <vector>

#include "openrnn/params.h"

namespace openrnn::mapping {

/// How the arrays of one cell are stored.
enum class KerasForm : std::uint8_t {
  /// kernel [I, G*U], recurrent_kernel [U, G*U], bias [G*U], or [2, G*U] of a GRU that resets after
  /// the product. Gates i f c o; z r h.
  kUsual,
  /// The same shapes as CuDNNLSTM and CuDNNGRU have them: cuDNN's own bytes, and biases [2*G*U].
  kCudnn,
  /// Keras 1: W [I, U], U [U, U] and b [U] of each gate. Gates i c f o; z r h.
  kSplit,
};

/// One layer and direction of a network, whose layout fits the arrays: without biases, with one,
/// or with two of a GRU that resets after the product and of kCudnn.
struct KerasPlace {
  std::int64_t layer = 0, direction = 0;
  KerasForm form = KerasForm::kUsual;
};

/// What Keras calls them, but for kSplit: 'kernel', 'recurrent_kernel', 'bias'.
const char* keras_array_name(std::size_t array);
/// The shapes of the arrays in Keras's order.
std::vector<Shape> keras_shapes(const ParamsLayout& layout, const KerasPlace& place);
/// Copies some rows of an array of that shape, of the dtype of `params`, into the buffer: those
/// from `first` on. An array of one dimension is one row.
void set_keras_rows(const ParamsLayout& layout, const KerasPlace& place, std::size_t array,
                    std::int64_t first, const ConstArrayView& rows, Array* params);
/// All arrays, whole.
void set_from_keras(const ParamsLayout& layout, const KerasPlace& place,
                    std::span<const ConstArrayView> arrays, Array* params);
/// The inverse.
std::vector<Array> keras_arrays(const ParamsLayout& layout, const KerasPlace& place,
                                const ConstArrayView& params);

}  // namespace openrnn::mapping
