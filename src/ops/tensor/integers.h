// What is found on the host: integers and truth values.
#pragma once

#include "ops/support/support.h"

namespace openrnn::ops {

/// Of two of one dtype without fractions, or of bools.
Tensor compare_integers(const char* call, CompareOp op, const Tensor& a, const Tensor& b);
/// Whether each element is not 0, as a bool array on the tensor's device.
DeviceArray truth_of(const char* call, const Tensor& x);

/// In a dtype, where that of x or the other one is no floating one: towards 0. No gradient. Throws:
/// ArgumentError naming an element that the dtype does not hold.
Tensor cast_on_host(const Tensor& x, DType dtype);

}  // namespace openrnn::ops
