// The tensors that the cells of a network have, and the opaque buffer.
#pragma once

#include <functional>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// One tensor of a network in the form of its cells.
struct TfFormTensor {
  std::int64_t layer = 0, direction = 0;
  /// 'kernel', 'gates/bias'.
  std::string suffix;
  Shape shape;
};

/// In TensorFlow's own cells: as TfCanonicalFormat has them. In Keras's: kernel, recurrent_kernel
/// and bias of each layer and direction.
std::vector<TfFormTensor> tf_form(const RnnSpec& spec, bool is_keras);
/// The opaque buffer of tensors of these shapes and of the spec's dtype, which `read` gives by
/// their number in that form: those of one layer after the other, so that no more are in memory.
Array tf_params(const RnnSpec& spec, bool is_keras, const std::function<Array(std::size_t)>& read);
/// The same of an optimizer slot, in the dtype of its tensors: two biases get what their sum has.
Array tf_slot(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors);

}  // namespace openrnn::mapping
