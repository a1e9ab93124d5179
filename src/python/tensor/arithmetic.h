// Arithmetic with Python operands: tensors, variables, arrays, numbers.
#pragma once

#include <array>

#include "python/support/convert.h"

namespace openrnn::python {

enum class Arithmetic : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide };

/// Whether it is a number of Python.
bool is_number(nb::handle value);
/// An argument of that call as a tensor.
Tensor as_given(nb::handle value, const char* call);
/// Indices and labels: integers of any dtype, as int32.
Tensor as_indices(nb::handle value, const char* call);

/// `value` copied, in `dtype` unless that is None, on `device` unless that is null. A Tensor of
/// another dtype is converted.
Tensor make_tensor(nb::handle value, nb::handle dtype, const Device* device = nullptr);

/// Whether `value` can be an operand of a tensor; if not, Python tries the other operand.
bool is_operand(nb::handle value);
/// Whether what is computed from a tensor or variable must be recorded, for a tape or a Model.
bool would_record(nb::handle value);
/// `value` as a tensor, in the dtype of `other` where it has none of its own.
Tensor as_operand(nb::handle value, const Tensor& other);

/// Both as tensors, a number in the dtype of the other one.
std::array<Tensor, 2> as_operands(nb::handle a, nb::handle b);
/// a op b, of shapes that broadcast. Throws: ArgumentError.
Tensor combine(Arithmetic op, nb::handle a, nb::handle b);
/// Of matrices; a [.., K] times b [K, N] for any rank of a.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// a^b; of the numbers 1 and 2 without a power.
Tensor power(nb::handle a, nb::handle b);
/// Integers, slices, None for a new axis of 1, '...', and arrays of integers or truth values, side
/// by side. Throws: IndexError of Python, UnsupportedError.
Tensor get_item(const Tensor& x, nb::handle key);

}  // namespace openrnn::python
