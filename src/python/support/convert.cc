#include "python/support/convert.h"

#include <algorithm>

#include "base/message.h"
#include "openrnn/runtime.h"
#include "python/dlpack/dlpack.h"
#include "python/support/buffer.h"

namespace openrnn::python {
namespace {

nb::handle keep_forever(nb::object object) { return object.release(); }

nb::handle attribute_of_numpy(const char* name) { return keep_forever(numpy().attr(name)); }

std::string text_of(const nb::object& object) { return nb::cast<std::string>(nb::str(object)); }

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

// Whether NumPy would read numbers out of strings.
bool holds_strings(const nb::object& objects) {
  for (const nb::handle item : objects.attr("ravel")()) {
    if (PyUnicode_Check(item.ptr()) || PyBytes_Check(item.ptr())) return true;
  }
  return false;
}

// The values as `dtype`: an integer must hold each as it is, a real number no complex one; strings,
// dates and durations are no numbers, though NumPy would make some of them.
nb::object converted(const nb::object& array, DType dtype, const AsTensor& how) {
  const auto from = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool number = from == "b" || from == "i" || from == "u" || from == "f" ||
                      from == "V" ||  // bfloat16 and its like
                      (from == "O" && !holds_strings(array));
  if (!number) {
    throw TypeError(message("[", how.call, "] an array of ", text_of(array.attr("dtype")),
                            ", expected ", dtype_name(dtype)));
  }
  nb::object made = array.attr("astype")(dtype_str(dtype), "copy"_a = false);
  const bool whole = dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
  if (whole && (from == "f" || from == "i" || from == "u") && !all_equal(made, array)) {
    throw ArgumentError(message("[", how.call, "] values of ", text_of(array.attr("dtype")),
                                " that ", dtype_name(dtype), " does not hold, expected whole ",
                                "numbers in its range"));
  }
  return made;
}

// Everything that the buffer protocol cannot provide directly, through NumPy.
nb::object through_numpy(nb::handle value, const AsTensor& how) {
  static const nb::handle asarray = attribute_of_numpy("asarray");
  static const nb::handle from_dlpack = attribute_of_numpy("from_dlpack");
  static const nb::handle contiguous = attribute_of_numpy("ascontiguousarray");
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

}  // namespace

nb::handle numpy() {
  static const nb::handle module = keep_forever(nb::module_::import_("numpy"));
  return module;
}

std::string quoted_type(nb::handle value) {
  return message("'", Py_TYPE(value.ptr())->tp_name, "'");
}

namespace {

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
  const nb::object array = through_numpy(value, how);
  if (std::optional<Tensor> tensor_of_array =
          from_buffer(array, {.call = how.call, .memory = how.memory})) {
    return *std::move(tensor_of_array);
  }
  throw TypeError(message("[", how.call, "] an array of ", text_of(array.attr("dtype")),
                          ", expected float16, float32, float64, int32, int64, uint8 or bool"));
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

const Device* as_device(nb::handle given) {
  if (given.is_none()) return nullptr;
  if (!nb::isinstance<nb::str>(given)) {
    throw TypeError(message("[device] ", quoted_type(given), " is given, expected a name such as ",
                            "'cpu' or 'gpu:0', or None"));
  }
  return &device(nb::cast<std::string>(given));
}

nb::str device_str(const Device& device) {
  const std::string_view name = device.name();
  return nb::str(name.data(), name.size());
}

DType as_dtype(nb::handle dtype) {
  if (nb::isinstance<nb::str>(dtype)) return parse_dtype(nb::cast<std::string>(dtype));
  static const nb::handle numpy_dtype = attribute_of_numpy("dtype");
  try {
    // TensorFlow's dtypes know their NumPy type.
    const nb::object source = nb::hasattr(dtype, "as_numpy_dtype")
                                  ? nb::object(dtype.attr("as_numpy_dtype"))
                                  : nb::borrow(dtype);
    if (source.is_none()) throw TypeError("[dtype] None is given, expected a dtype");
    return parse_dtype(nb::cast<std::string>(numpy_dtype(source).attr("name")));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw TypeError(message("[dtype] ", quoted_type(dtype), " is given, expected a dtype such as ",
                            "'float32'"));
  }
}

std::optional<DType> as_optional_dtype(nb::handle dtype) {
  return dtype.is_none() ? std::nullopt : std::optional(as_dtype(dtype));
}

std::optional<std::string_view> weights_dtype_str(WeightsDType dtype) {
  if (dtype == WeightsDType::kNone) return std::nullopt;
  return to_string(dtype);
}

nb::str dtype_str(DType dtype) {
  const std::string_view name = dtype_name(dtype);
  return nb::str(name.data(), name.size());
}

Shape as_shape(const char* call, nb::handle shape) {
  if (shape.is_none()) {
    throw ArgumentError(message("[", call, "] the shape is None: its rank is unknown, expected a ",
                                "tuple of sizes, None for a size that is not known"));
  }
  const nb::object dims =
      nb::hasattr(shape, "as_list") ? nb::object(shape.attr("as_list")()) : nb::borrow(shape);
  if (nb::isinstance<nb::int_>(dims)) return {nb::cast<std::int64_t>(dims)};
  if (nb::isinstance<nb::str>(dims) || !nb::hasattr(dims, "__iter__")) {
    throw TypeError(message("[", call, "] ", quoted_type(shape), " as a shape, expected a tuple"));
  }
  Shape result;
  for (const nb::handle dim : dims) {
    const nb::object value =
        nb::hasattr(dim, "value") ? nb::object(dim.attr("value")) : nb::borrow(dim);
    std::int64_t size = -1;
    if (!value.is_none()) {
      size = as_int(call, value);
    }
    result.push_back(size);
  }
  return result;
}

nb::list shape_list(const Shape& shape) {
  nb::list result;
  for (const std::int64_t dim : shape) {
    result.append(dim < 0 ? nb::object(nb::none()) : nb::object(nb::int_(dim)));
  }
  return result;
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::tuple result = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    nb::object dim = shape[i] < 0 ? nb::none() : nb::object(nb::int_(shape[i]));
    PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), dim.release().ptr());
  }
  return result;
}

std::optional<std::vector<std::int32_t>> as_lengths(const char* call, nb::handle lengths) {
  if (lengths.is_none()) return std::nullopt;
  const Tensor given = as_tensor(lengths, {.call = call});
  if (given.is_symbolic() || given.shape().size() != 1 ||
      (given.dtype() != DType::kInt32 && given.dtype() != DType::kInt64 && given.value().size())) {
    throw ArgumentError(message("[", call, "] sequence lengths are ", dtype_name(given.dtype()),
                                " of shape ", to_string(given.shape()),
                                ", expected one integer for each row: shape [batch]"));
  }
  const Array host = given.to_host();
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < host.size(); ++i) {
    const std::int64_t length = host.dtype() == DType::kInt64
                                    ? host.as<std::int64_t>()[static_cast<std::size_t>(i)]
                                    : host.as<std::int32_t>()[static_cast<std::size_t>(i)];
    if (length < 0 || length > INT32_MAX) {
      throw ArgumentError(message("[", call, "] the length of row ", i, " is ", length,
                                  ", expected 0 to max_time"));
    }
    result.push_back(static_cast<std::int32_t>(length));
  }
  return result;
}

std::vector<Variable> as_variables(const char* call, nb::handle variables) {
  if (!nb::isinstance<nb::list>(variables) && !nb::isinstance<nb::tuple>(variables)) {
    throw TypeError(message("[", call, "] ", quoted_type(variables),
                            " is given, expected a list of Variables"));
  }
  std::vector<Variable> result;
  for (const nb::handle item : variables) {
    const Variable* variable = nullptr;
    if (!nb::try_cast<const Variable*>(item, variable) || !variable) {
      throw TypeError(
          message("[", call, "] ", quoted_type(item), " is given, expected a Variable"));
    }
    result.push_back(*variable);
  }
  return result;
}

bool as_flag(const char* call, const char* name, nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True);
  static const nb::handle array_types = keep_forever(nb::make_tuple(
      numpy().attr("generic"), numpy().attr("ndarray"), nb::type<Tensor>(), nb::type<Variable>()));
  const bool array = PyObject_IsInstance(value.ptr(), array_types.ptr()) == 1;
  if (array || PyLong_Check(value.ptr())) {
    const Tensor tensor = as_tensor(value, {.call = call});
    if (!tensor.is_symbolic() && tensor.shape().empty()) {
      const auto number = nb::cast<double>(nb::float_(as_numpy(tensor).attr("item")()));
      if (number == 0.0 || number == 1.0) return number == 1.0;
    }
  }
  throw TypeError(
      message("[", call, "] ", name, " is ", quoted_type(value), ", expected True or False"));
}

std::int64_t as_int(const char* call, nb::handle value) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw TypeError(message("[", call, "] ", quoted_type(value), ", expected an integer"));
  }
  return nb::cast<std::int64_t>(index);
}

std::optional<std::int64_t> as_optional_int(nb::handle value) {
  return value.is_none() ? std::nullopt : std::optional(as_value<std::int64_t>("seed", value));
}

}  // namespace openrnn::python
