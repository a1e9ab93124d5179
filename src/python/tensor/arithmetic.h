// Arithmetic with Python operands: tensors, variables, arrays, numbers.
#pragma once

#include "python/support/convert.h"

namespace openrnn::python {

enum class Arithmetic : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide };

/// `value` copied, in `dtype` unless that is None, on `device` unless that is null. A Tensor of
/// another dtype is converted.
Tensor make_tensor(nb::handle value, nb::handle dtype, const Device* device = nullptr);

/// Whether `value` can be an operand of a tensor; if not, Python tries the other operand.
bool is_operand(nb::handle value);
/// Whether what is computed from a tensor or variable must be recorded, for a tape or a Model.
bool would_record(nb::handle value);
/// `value` as a tensor, in the dtype of `other` where it has none of its own.
Tensor as_operand(nb::handle value, const Tensor& other);

/// a op b; one of them a number, a row of the other's last dimension or a scalar tensor, or both of
/// one shape. Throws: ArgumentError.
Tensor combine(Arithmetic op, nb::handle a, nb::handle b);
/// Of matrices; a [.., K] times b [K, N] for any rank of a.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// Exponents 1 and 2. Throws: UnsupportedError; TypeError for a tensor, which would get no
/// gradient.
Tensor power(const Tensor& x, nb::handle exponent);
/// Integers, slices of step 1, and None for a new axis of 1, along the leading axes.
Tensor get_item(const Tensor& x, nb::handle key);

}  // namespace openrnn::python
