#include "python/support/convert.h"

#include "base/message.h"
#include "openrnn/runtime.h"

namespace openrnn::python {

nb::handle numpy() {
  static const nb::handle module = nb::module_::import_("numpy").release();
  return module;
}

std::string quoted_type(nb::handle value) {
#ifdef Py_LIMITED_API
  // What tp_name is, which the stable ABI does not show: with the module for types written in C.
  const nb::handle type = value.type();
  const auto name = nb::cast<std::string>(type.attr("__name__"));
  const auto module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const auto flags = PyType_GetFlags(reinterpret_cast<PyTypeObject*>(type.ptr()));
  if ((flags & Py_TPFLAGS_HEAPTYPE) == 0 && module != "builtins") {
    return message("'", module, ".", name, "'");
  }
  return message("'", name, "'");
#else
  return message("'", Py_TYPE(value.ptr())->tp_name, "'");
#endif
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
  static const nb::handle numpy_dtype = nb::object(numpy().attr("dtype")).release();
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

nb::str dtype_str(DType dtype) {
  const std::string_view name = dtype_name(dtype);
  return nb::str(name.data(), name.size());
}

bool has_ml_dtypes() {
  static const bool found = [] {
    try {
      nb::module_::import_("ml_dtypes");
      return true;
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      return false;
    }
  }();
  return found;
}

nb::object numpy_dtype(DType dtype) {
  if (dtype != DType::kBfloat16) return numpy().attr("dtype")(dtype_str(dtype));
  if (!has_ml_dtypes()) {
    throw UnsupportedError(
        "[numpy] NumPy has bfloat16 from the package ml_dtypes, which is not installed, expected "
        "it (pip install ml_dtypes) or a cast to float32 before");
  }
  return numpy().attr("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
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
    PyTuple_SetItem(result.ptr(), static_cast<Py_ssize_t>(i), dim.release().ptr());
  }
  return result;
}

std::pair<bool, std::int64_t> as_save(std::string_view call, nb::handle save) {
  if (PyBool_Check(save.ptr())) return {nb::cast<bool>(save), 0};
  std::int64_t steps = 0;
  if (nb::try_cast<std::int64_t>(save, steps) && steps > 0) return {true, steps};
  if (PyUnicode_Check(save.ptr()) && nb::cast<std::string>(save) == "inputs") {
    return {true, kRecomputeRoot};
  }
  throw ArgumentError(message("[", call, "] save is ", nb::repr(save).c_str(),
                              ", expected False, True, 'inputs' or a number of time steps"));
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
  static const nb::handle array_types =
      nb::make_tuple(numpy().attr("generic"), numpy().attr("ndarray"), nb::type<Tensor>(),
                     nb::type<Variable>())
          .release();
  const bool array = PyObject_IsInstance(value.ptr(), array_types.ptr()) == 1;
  if (array || PyLong_Check(value.ptr())) {
    const Tensor tensor = as_tensor(value, {.call = call});
    if (!tensor.is_symbolic() && tensor.shape().empty()) {
      const double number = tensor.item();
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
