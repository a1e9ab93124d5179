// The buffer protocol, in and out.
#pragma once

#include "python/support/convert.h"

namespace openrnn::python {

/// A tensor over an exporter of the buffer protocol; nothing when `value` is none, or when its
/// element type, layout or dtype needs a conversion. `words`: its 16-bit words are elements of
/// that.
std::optional<Tensor> from_buffer(nb::handle value, const AsTensor& how,
                                  std::optional<DType> words = {});

/// The type slots with which a Tensor exports its memory, read-only.
extern PyType_Slot tensor_slots[];

}  // namespace openrnn::python
