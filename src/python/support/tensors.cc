// Python values as tensors: what lends its memory, what a GPU holds, and NumPy for the rest.
#include <algorithm>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/support/buffer.h"
#include "python/support/dlpack.h"

namespace openrnn::python {
namespace {

std::string text_of(const nb::object& object) { return nb::cast<std::string>(nb::str(object)); }

// Of NumPy's dtypes ml_dtypes' is meant, of others' whatever bears the name.
bool is_bfloat16(const nb::object& dtype) { return text_of(dtype).ends_with("bfloat16"); }

bool all_equal(const nb::object& a, const nb::object& b) {
  return nb::cast<bool>(nb::bool_(a.attr("__eq__")(b).attr("all")()));
}

// The dtype that a value without one gets: TensorFlow's, not NumPy's.
nb::object with_default_dtype(const nb::object& array) {
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (kind == "f") return nb::str("float32");
  if (kind != "i" && kind != "u") return nb::none();
  return nb::str(all_equal(array.attr("astype")("int32"), array) ? "int32" : "int64");
}

// Whether NumPy would read numbers out of strings, or NaN out of None.
bool holds_no_numbers(const nb::object& objects) {
  for (const nb::handle item : objects.attr("ravel")()) {
    if (item.is_none() || PyUnicode_Check(item.ptr()) || PyBytes_Check(item.ptr())) return true;
  }
  return false;
}

// The values as `dtype`: an integer must hold each as it is, a real number no complex one; strings,
// None, dates and durations are no numbers, though NumPy would make some of them.
nb::object converted(const nb::object& array, DType dtype, const AsTensor& how) {
  if (dtype == DType::kBfloat16 && is_bfloat16(array.attr("dtype"))) return array;
  const auto from = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool number = from == "b" || from == "i" || from == "u" || from == "f" ||
                      from == "V" ||  // bfloat16 and its like
                      (from == "O" && !holds_no_numbers(array));
  if (!number) {
    throw TypeError(message("[", how.call, "] an array of ", text_of(array.attr("dtype")),
                            ", expected ", dtype_name(dtype)));
  }
  // NumPy alone has no bfloat16: as_tensor rounds.
  const DType target = dtype == DType::kBfloat16 ? DType::kFloat64 : dtype;
  nb::object made = array.attr("astype")(dtype_str(target), "copy"_a = false);
  const bool whole = dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
  if (whole && (from == "f" || from == "i" || from == "u" || from == "V") &&
      !all_equal(made, array)) {
    throw ArgumentError(message("[", how.call, "] values of ", text_of(array.attr("dtype")),
                                " that ", dtype_name(dtype), " does not hold, expected whole ",
                                "numbers in its range"));
  }
  return made;
}

// Everything that the buffer protocol cannot provide directly, through NumPy.
nb::object through_numpy(nb::handle value, const AsTensor& how) {
  static const nb::handle asarray = nb::object(numpy().attr("asarray")).release();
  static const nb::handle from_dlpack = nb::object(numpy().attr("from_dlpack")).release();
  static const nb::handle contiguous = nb::object(numpy().attr("ascontiguousarray")).release();
  nb::object array;
  try {
    const bool plain = !nb::hasattr(value, "dtype") && !nb::hasattr(value, "__array__");
    array = nb::hasattr(value, "__dlpack__") && !nb::hasattr(value, "__array__")
                ? from_dlpack(value)
                : asarray(value);
    if (how.dtype) {
      array = converted(array, *how.dtype, how);
    } else if (plain && !PyObject_CheckBuffer(value.ptr())) {
      const nb::object dtype = with_default_dtype(array);
      if (!dtype.is_none()) array = array.attr("astype")(dtype);
    }
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    throw TypeError(message("[", how.call, "] ", quoted_type(value), " is given (",
                            nb::cast<std::string>(nb::str(error.value())),
                            "), expected an array of numbers"));
  }
  // A swapped byte order is the same dtype.
  const nb::object dtype = array.attr("dtype");
  if (!nb::cast<bool>(dtype.attr("isnative"))) {
    array = array.attr("astype")(dtype.attr("newbyteorder")("="));
  }
  // A scalar would come out as [1].
  return nb::cast<int>(array.attr("ndim")) == 0 ? array.attr("copy")() : contiguous(array);
}

// An array of NumPy as it is; nothing when the library has no such dtype.
std::optional<Tensor> of_numpy(const nb::object& array, Memory memory, const char* call) {
  if (!is_bfloat16(array.attr("dtype")))
    return from_buffer(array, {.call = call, .memory = memory});
  return from_buffer(array.attr("view")("uint16"), {.call = call, .memory = memory},
                     DType::kBfloat16);
}

// An array of bfloat16 on the cpu that is no NumPy array, such as PyTorch's, which NumPy cannot
// read.
std::optional<Tensor> of_foreign_bfloat16(nb::handle value, const AsTensor& how) {
  if (!nb::hasattr(value, "__dlpack__") || !nb::hasattr(value, "dtype")) return std::nullopt;
  if (nb::isinstance(value, numpy().attr("ndarray"))) return std::nullopt;
  if (!is_bfloat16(value.attr("dtype"))) return std::nullopt;
  const std::optional<Tensor> view = view_of_dlpack(value);
  if (!view || view->dtype() != DType::kBfloat16) return std::nullopt;
  const ConstArrayView host = view->value().host_view();
  const DType wanted = how.dtype.value_or(host.dtype);
  if (wanted == host.dtype) return how.memory == Memory::kBorrow ? *view : Tensor(host);
  const Array wide = cast(host, is_floating(wanted) ? wanted : DType::kFloat32);
  return as_tensor(as_numpy(wide), how);
}

// An array of a GPU as the call wants it.
Tensor of_gpu(const Tensor& view, const AsTensor& how) {
  const bool same = !how.dtype || view.dtype() == *how.dtype;
  if (same && how.memory == Memory::kBorrow) return view;
  const Device& device = view.device();
  const bool real = is_floating(view.dtype()) && (same || is_floating(*how.dtype));
  if (!same && !real) {
    // Integers are checked one by one, on the host.
    return as_tensor(as_numpy(view), how);
  }
  const DeviceArray& from = view.value();
  DeviceArray to(device, how.dtype.value_or(view.dtype()), view.shape());
  if (same) {
    device.copy(
        {.count = 1, .bytes = to.size_bytes(), .from = from.data(), .to = to.mutable_data()});
  } else {
    device.convert(from.size(), from.dtype(), from.data(), to.dtype(), to.mutable_data());
  }
  return Tensor(std::move(to));
}

}  // namespace

Tensor as_tensor(nb::handle value, const AsTensor& how) {
  const Tensor* tensor = nullptr;
  if (nb::try_cast<const Tensor*>(value, tensor) && tensor) return *tensor;
  const Variable* variable = nullptr;
  if (nb::try_cast<const Variable*>(value, variable) && variable) return variable->read();
  if (std::optional<Tensor> direct = from_buffer(value, how)) return *std::move(direct);
  if (std::optional<Tensor> view = view_of_gpu_array(value)) return of_gpu(*view, how);
  if (std::optional<Tensor> other = of_foreign_bfloat16(value, how)) return *std::move(other);
  const nb::object array = through_numpy(value, how);
  const bool rounds = how.dtype == DType::kBfloat16 && !is_bfloat16(array.attr("dtype"));
  const Memory memory = rounds ? Memory::kBorrow : how.memory;
  if (std::optional<Tensor> made = of_numpy(array, memory, how.call)) {
    if (!rounds) return *std::move(made);
    return Tensor(cast(made->value().host_view(), DType::kBfloat16).view());
  }
  throw TypeError(message("[", how.call, "] an array of ", text_of(array.attr("dtype")),
                          ", expected float16, bfloat16, float32, float64, int32, int64, uint8 or "
                          "bool"));
}

bool is_symbolic(nb::handle value) {
  if (PyTuple_Check(value.ptr())) {
    const nb::tuple items = nb::borrow<nb::tuple>(value);
    return std::any_of(items.begin(), items.end(),
                       [](nb::handle item) { return is_symbolic(item); });
  }
  const Tensor* tensor = nullptr;
  return nb::try_cast<const Tensor*>(value, tensor) && tensor && tensor->is_symbolic();
}

Tensor as_optional_tensor(nb::handle value, const AsTensor& how) {
  return value.is_none() ? Tensor() : as_tensor(value, how);
}

std::vector<Tensor> as_tensors(nb::handle values, const AsTensor& how) {
  if (!nb::isinstance<nb::list>(values) && !nb::isinstance<nb::tuple>(values)) {
    throw TypeError(
        message("[", how.call, "] ", quoted_type(values), " is given, expected a list or a tuple"));
  }
  std::vector<Tensor> tensors;
  for (const nb::handle value : values) tensors.push_back(as_tensor(value, how));
  return tensors;
}

std::vector<Array> as_arrays(nb::handle values, const AsTensor& how) {
  std::vector<Array> arrays;
  for (const Tensor& tensor : as_tensors(values, how)) arrays.push_back(tensor.to_host());
  return arrays;
}

std::vector<ConstArrayView> views(const std::vector<Array>& arrays) {
  std::vector<ConstArrayView> result;
  for (const Array& array : arrays) result.push_back(array.view());
  return result;
}

}  // namespace openrnn::python
