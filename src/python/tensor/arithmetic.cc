#include "python/tensor/arithmetic.h"

#include "base/message.h"
#include "graph/symbolic/share.h"
#include "openrnn/ops.h"

namespace openrnn::python {
namespace {

bool is_number(nb::handle value) { return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()); }

const Tensor* find_tensor(nb::handle value, Tensor& storage) {
  const Tensor* tensor = nullptr;
  if (nb::try_cast<const Tensor*>(value, tensor) && tensor) return tensor;
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(value, variable) && variable) {
    storage = variable->read();
    return &storage;
  }
  return nullptr;
}

Tensor with_number(Arithmetic op, const Tensor& x, double number) {
  switch (op) {
    case Arithmetic::kAdd:
      return ops::add_scalar(x, number);
    case Arithmetic::kSubtract:
      return ops::add_scalar(x, -number);
    case Arithmetic::kMultiply:
      return ops::scale(x, number);
    default:
      // One rounding: dividing is not multiplying by 1 / number.
      return ops::divide(x, ops::add_scalar(ops::scale(x.detached(), 0.0), number));
  }
}

Tensor number_with(Arithmetic op, double number, const Tensor& x) {
  switch (op) {
    case Arithmetic::kAdd:
    case Arithmetic::kMultiply:
      return with_number(op, x, number);
    case Arithmetic::kSubtract:
      return ops::add_scalar(ops::negate(x), number);
    default:
      return ops::divide(ops::add_scalar(ops::scale(x.detached(), 0.0), number), x);
  }
}

Tensor of_two(Arithmetic op, const Tensor& a, const Tensor& b) {
  if (op == Arithmetic::kAdd && b.shape().size() == 1 && a.shape().size() > 1) {
    return ops::add_row(a, b);
  }
  if (op == Arithmetic::kAdd && a.shape().size() == 1 && b.shape().size() > 1) {
    return ops::add_row(b, a);
  }
  if (op == Arithmetic::kSubtract && b.shape().size() == 1 && a.shape().size() > 1) {
    return ops::add_row(a, ops::negate(a.is_symbolic() ? graph::as_read(b) : b));
  }
  if (op == Arithmetic::kSubtract && a.shape().size() == 1 && b.shape().size() > 1) {
    return ops::add_row(ops::negate(b), a);
  }
  switch (op) {
    case Arithmetic::kAdd:
      return ops::add(a, b);
    case Arithmetic::kSubtract:
      return ops::subtract(a, b);
    case Arithmetic::kMultiply:
      return ops::multiply(a, b);
    default:
      return ops::divide(a, b);
  }
}

// A constant of one element counts as a number: no gradient flows to it.
std::optional<double> constant_number(nb::handle value, const Tensor* tensor, const Tensor& other) {
  if (is_number(value)) return nb::cast<double>(value);
  if (!tensor || tensor->is_symbolic() || tensor->tracked()) return std::nullopt;
  if (tensor->value().size() != 1 || tensor->shape().size() > other.shape().size() ||
      tensor->shape() == other.shape() || !is_floating(tensor->dtype())) {
    return std::nullopt;
  }
  return tensor->item();
}

Tensor slice_axis(const Tensor& x, std::int64_t axis, nb::handle key) {
  Py_ssize_t begin = 0, end = 0, step = 1;
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  if (PySlice_Unpack(key.ptr(), &begin, &end, &step) != 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &begin, &end, step);
  if (step != 1) throw UnsupportedError(message("[Tensor] a slice of step ", step, ", expected 1"));
  return count == size ? x : ops::slice(x, {.axis = axis, .begin = begin, .size = count});
}

}  // namespace

Tensor make_tensor(nb::handle value, nb::handle dtype, const Device* device) {
  const std::optional<DType> wanted = as_optional_dtype(dtype);
  Tensor made = as_tensor(value, {.call = "Tensor", .dtype = wanted});
  if (wanted && made.dtype() != *wanted) made = ops::cast(made, *wanted);
  return device ? made.to(*device) : made;
}

bool is_operand(nb::handle value) {
  return is_number(value) || nb::isinstance<Tensor>(value) || nb::isinstance<Variable>(value) ||
         PyObject_CheckBuffer(value.ptr()) || nb::isinstance<nb::list>(value) ||
         nb::isinstance<nb::tuple>(value) || nb::hasattr(value, "__array__") ||
         nb::hasattr(value, "__dlpack__");
}

bool would_record(nb::handle value) {
  Tensor storage;
  const Tensor* const tensor = find_tensor(value, storage);
  return tensor && (tensor->is_symbolic() || recording({*tensor}));
}

Tensor as_operand(nb::handle value, const Tensor& other) {
  Tensor storage;
  if (const Tensor* tensor = find_tensor(value, storage)) return *tensor;
  return as_tensor(value, {.call = "Tensor", .dtype = other.dtype()});
}

Tensor combine(Arithmetic op, nb::handle a, nb::handle b) {
  Tensor kept_a, kept_b;
  const Tensor* left = find_tensor(a, kept_a);
  const Tensor* right = find_tensor(b, kept_b);
  if (left && !right && !is_number(b)) right = &(kept_b = as_operand(b, *left));
  if (right && !left && !is_number(a)) left = &(kept_a = as_operand(a, *right));
  if (!left && !right) {
    left = &(kept_a = as_tensor(a, {.call = "Tensor"}));
    if (!is_number(b)) right = &(kept_b = as_operand(b, *left));
  }
  if (left) {
    if (const auto number = constant_number(b, right, *left))
      return with_number(op, *left, *number);
  }
  if (right) {
    if (const auto number = constant_number(a, left, *right)) {
      return number_with(op, *number, *right);
    }
  }
  return of_two(op, *left, *right);
}

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  if (a.shape().size() > 2 && b.shape().size() == 2 && !transpose_a && !transpose_b) {
    return ops::dense(a, b);
  }
  return ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
}

Tensor power(const Tensor& x, nb::handle given) {
  if (nb::isinstance<Tensor>(given) || nb::isinstance<Variable>(given)) {
    throw TypeError(
        message("[Tensor] the exponent is ", quoted_type(given), ", expected a number: 1 or 2"));
  }
  const auto exponent = as_value<double>("exponent", given);
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return ops::square(x);
  throw UnsupportedError(message("[Tensor] the exponent is ", exponent, ", expected 1 or 2"));
}

Tensor get_item(const Tensor& x, nb::handle key) {
  const nb::tuple keys =
      nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(nb::borrow(key));
  Tensor result = x;
  std::int64_t axis = 0;
  for (const nb::handle one : keys) {
    if (one.is_none()) {
      Shape shape = result.shape();
      shape.insert(shape.begin() + axis++, 1);
      result = ops::reshape(result, shape);
      continue;
    }
    if (axis >= static_cast<std::int64_t>(result.shape().size())) {
      PyErr_SetString(PyExc_IndexError, message("[Tensor] ", keys.size(), " indices for shape ",
                                                to_string(x.shape()), ", expected fewer")
                                            .c_str());
      throw nb::python_error();
    }
    if (PySlice_Check(one.ptr())) {
      result = slice_axis(result, axis++, one);
      continue;
    }
    const std::int64_t size = result.shape()[static_cast<std::size_t>(axis)];
    const std::int64_t index = as_int("Tensor", one);
    if (size >= 0 && (index < -size || index >= size)) {
      PyErr_SetString(
          PyExc_IndexError,
          message("[Tensor] the index is ", index, ", expected ", -size, " to ", size - 1).c_str());
      throw nb::python_error();
    }
    result =
        ops::slice(result, {.axis = axis, .begin = index < 0 ? index + size : index, .size = 1});
    Shape shape = result.shape();
    shape.erase(shape.begin() + axis);
    result = ops::reshape(result, shape);
  }
  return result;
}

}  // namespace openrnn::python
