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
  /// Its number among those of its cell, in Keras's form.
  std::size_t array = 0;
};

/// In TensorFlow's own cells: as TfCanonicalFormat has them. In Keras's: kernel, recurrent_kernel
/// and bias of each layer and direction.
std::vector<TfFormTensor> tf_form(const RnnSpec& spec, bool is_keras);
using TfRowVisitor = std::function<void(std::int64_t first, const ConstArrayView& rows)>;
/// Visits the rows of the tensor of that number in the form, as ModelFile::read_rows does.
using TfRowReader = std::function<void(std::size_t tensor, const TfRowVisitor& visit)>;
/// The opaque buffer of tensors of these shapes and of the spec's dtype.
Array tf_params(const RnnSpec& spec, bool is_keras, const TfRowReader& read);
/// The same of an optimizer slot, in the dtype of its tensors: two biases get what their sum has.
Array tf_slot(const RnnSpec& spec, bool is_keras, std::span<const ConstArrayView> tensors);

}  // namespace openrnn::mapping
