#include "python/tensor/arithmetic.h"

#include "base/message.h"
#include "graph/symbolic/share.h"
#include "openrnn/ops.h"

namespace openrnn::python {
namespace {

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

// Whether b is a row of the last dimension of a: adding that makes no copy of it for each row.
bool is_row(const Tensor& a, const Tensor& b) {
  return b.shape().size() == 1 && a.shape().size() > 1 && b.shape()[0] == a.shape().back() &&
         b.shape()[0] >= 0;
}

Tensor of_two(Arithmetic op, const Tensor& a, const Tensor& b) {
  if (op == Arithmetic::kAdd && is_row(a, b)) return ops::add_row(a, b);
  if (op == Arithmetic::kAdd && is_row(b, a)) return ops::add_row(b, a);
  if (op == Arithmetic::kSubtract && is_row(a, b)) {
    return ops::add_row(a, ops::negate(a.is_symbolic() ? graph::as_read(b) : b));
  }
  if (op == Arithmetic::kSubtract && is_row(b, a)) return ops::add_row(ops::negate(b), a);
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

}  // namespace

bool is_number(nb::handle value) { return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()); }

Tensor as_given(nb::handle value, const char* call) { return as_tensor(value, {.call = call}); }

Tensor as_indices(nb::handle value, const char* call) {
  const Tensor given = as_given(value, call);
  if (given.dtype() == DType::kInt32) return given;
  return as_tensor(value, {.call = call, .dtype = DType::kInt32});
}

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

namespace {

// Two operands as tensors, of which a number has none.
struct Operands {
  Tensor kept_a, kept_b;
  const Tensor* left = nullptr;
  const Tensor* right = nullptr;

  Operands(nb::handle a, nb::handle b)
      : left(find_tensor(a, kept_a)), right(find_tensor(b, kept_b)) {
    if (left && !right && !is_number(b)) right = &(kept_b = as_operand(b, *left));
    if (right && !left && !is_number(a)) left = &(kept_a = as_operand(a, *right));
    if (left || right) return;
    left = &(kept_a = as_tensor(a, {.call = "Tensor"}));
    if (!is_number(b)) right = &(kept_b = as_operand(b, *left));
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
};

}  // namespace

std::array<Tensor, 2> as_operands(nb::handle a, nb::handle b) {
  const Operands given(a, b);
  return {given.left ? *given.left : as_operand(a, *given.right),
          given.right ? *given.right : as_operand(b, *given.left)};
}

Tensor combine(Arithmetic op, nb::handle a, nb::handle b) {
  const Operands given(a, b);
  if (given.left) {
    if (const auto number = constant_number(b, given.right, *given.left)) {
      return with_number(op, *given.left, *number);
    }
  }
  if (given.right) {
    if (const auto number = constant_number(a, given.left, *given.right)) {
      return number_with(op, *number, *given.right);
    }
  }
  return of_two(op, *given.left, *given.right);
}

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  if (a.shape().size() > 2 && b.shape().size() == 2 && !transpose_a && !transpose_b) {
    return ops::dense(a, b);
  }
  return ops::matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
}

Tensor power(nb::handle a, nb::handle b) {
  const std::array<Tensor, 2> in = as_operands(a, b);
  if (is_number(b)) {
    const auto exponent = nb::cast<double>(b);
    if (exponent == 1.0) return in[0];
    if (exponent == 2.0) return ops::square(in[0]);
  }
  return ops::power(in[0], in[1]);
}

}  // namespace openrnn::python
