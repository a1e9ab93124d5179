#include "python/tensor/members.h"

#include "base/message.h"

namespace openrnn::python {
namespace {

// The arguments one by one, or as one sequence.
nb::object one_sequence(const nb::args& given) {
  const bool single =
      given.size() == 1 && !PyLong_Check(nb::handle(given[0]).ptr()) &&
      (PySequence_Check(nb::handle(given[0]).ptr()) || nb::hasattr(given[0], "as_list"));
  return single ? nb::object(given[0]) : nb::object(given);
}

std::vector<std::int64_t> integers(const char* call, nb::handle given) {
  std::vector<std::int64_t> found;
  for (const nb::handle one : nb::borrow<nb::object>(given)) found.push_back(as_int(call, one));
  return found;
}

}  // namespace

ops::ReduceOptions as_reduction(const char* call, nb::handle axis, bool keepdims) {
  ops::ReduceOptions options{.axes = {}, .keepdims = keepdims};
  if (axis.is_none()) return options;
  options.axes = PyTuple_Check(axis.ptr()) || PyList_Check(axis.ptr())
                     ? integers(call, axis)
                     : std::vector{as_int(call, axis)};
  return options;
}

nb::object dtype_object(DType dtype) {
  if (dtype == DType::kBfloat16 && !has_ml_dtypes()) return dtype_str(dtype);
  return numpy_dtype(dtype);
}

const Tensor& with_value(const Tensor& tensor, const char* call) {
  // NumPy's own array of a symbolic tensor would be an array of one object.
  if (tensor.is_symbolic() || tensor.empty()) {
    throw TypeError(std::string("[") + call +
                    "] the tensor is symbolic, expected one with a value: call a Model");
  }
  return tensor;
}

nb::object item_of(const Tensor& tensor) {
  const double value = tensor.item();
  if (is_floating(tensor.dtype())) return nb::float_(value);
  if (tensor.dtype() == DType::kBool) return nb::bool_(value != 0.0);
  return nb::cast(tensor.dtype() == DType::kInt64 ? tensor.to_host().as<std::int64_t>()[0]
                                                  : static_cast<std::int64_t>(value));
}

nb::object formatted(nb::handle self, const Tensor& tensor, const std::string& spec) {
  if (spec.empty()) return nb::str(self);
  if (tensor.is_symbolic() || tensor.empty() || tensor.value().size() != 1) {
    throw TypeError(message("[format] the format is '", spec, "' for shape ",
                            to_string(tensor.shape()), ", expected one element with a value"));
  }
  return nb::module_::import_("builtins").attr("format")(item_of(tensor), spec);
}

std::string as_html(nb::handle self) {
  const nb::object text = nb::module_::import_("html").attr("escape")(nb::repr(self));
  return "<pre>" + nb::cast<std::string>(text) + "</pre>";
}

bool contains(const Tensor& tensor, nb::handle value) {
  with_value(tensor, "in");
  if (!is_operand(value)) return false;
  const Tensor found = ops::equal(tensor, as_operand(value, tensor));
  const Array host = found.to_host();
  for (const bool one : host.as<bool>()) {
    if (one) return true;
  }
  return false;
}

Tensor reshaped(const Tensor& tensor, const nb::args& shape) {
  return ops::reshape(tensor, as_shape("reshape", one_sequence(shape)));
}

Tensor transposed(const Tensor& tensor, const nb::args& perm) {
  const bool none = perm.size() == 0 || (perm.size() == 1 && nb::handle(perm[0]).is_none());
  return ops::transpose(
      tensor, none ? std::vector<std::int64_t>{} : integers("transpose", one_sequence(perm)));
}

nb::object size_of(const Tensor& tensor) {
  for (const std::int64_t size : tensor.shape()) {
    if (size < 0) return nb::none();
  }
  return nb::cast(shape_size(tensor.shape()));
}

std::int64_t length_of(const Tensor& tensor) {
  if (tensor.shape().empty() || tensor.shape()[0] < 0) {
    throw TypeError("[len] the tensor has no known first dimension, expected one");
  }
  return tensor.shape()[0];
}

std::vector<Tensor> parts_of(const Tensor& tensor) {
  const std::int64_t length = length_of(tensor);
  if (is_floating(tensor.dtype())) return ops::unstack(tensor);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < length; ++i) parts.push_back(get_item(tensor, nb::int_(i)));
  return parts;
}

nb::object compared(Compare compare, nb::handle a, nb::handle b) {
  if (!is_operand(a) || !is_operand(b)) return nb::borrow(Py_NotImplemented);
  const std::array<Tensor, 2> in = as_operands(a, b);
  return nb::cast(compare(in[0], in[1]));
}

}  // namespace openrnn::python
