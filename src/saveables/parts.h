// One tensor of the cell format and its place in the opaque buffer.
#pragma once

#include "openrnn/saveables.h"

namespace openrnn::saveables {

/// What a tensor holds of two biases: their sum, or one of them.
enum class BiasForm : std::uint8_t { kSum, kInput, kRecurrent };

/// The tensor of a buffer.
Array tensor_of(const TfTensor& tensor, BiasForm form, const ConstArrayView& opaque);
/// The inverse for the tensor's rows from `first` on, of the buffer's dtype. A bias is one row.
void set_rows(const TfTensor& tensor, BiasForm form, std::int64_t first, const ConstArrayView& rows,
              Array* opaque);

}  // namespace openrnn::saveables
