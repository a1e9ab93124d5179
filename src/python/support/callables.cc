// Python callables as the functions that the library takes.
#include <atomic>
#include <cstring>

#include "base/message.h"
#include "python/support/convert.h"

namespace openrnn::python {
namespace {

/// One of the library's own initializers, as Python passes it around.
struct NativeInitializer {
  Initializer function;
};

/// Functors of our own, so that the Python object can be recovered.
struct PythonTensorFunction {
  Kept function;
  const char* call;
  Tensor operator()(const Tensor& tensor) const { return call_on_tensor(function, tensor, call); }
};

void fill_from_python(const Kept& function, ArrayView values);

struct PythonInitializer {
  Kept function;
  Initializer native;  // empty for a Python callable
  void operator()(ArrayView values, RandomStream& random) const {
    if (native) return native(values, random);
    fill_from_python(function, values);
  }
};

void fill_from_python(const Kept& function, ArrayView values) {
  const nb::gil_scoped_acquire lock;
  // So that NumPy knows the name.
  if (values.dtype == DType::kBfloat16) has_ml_dtypes();
  const nb::object given =
      function.get()(shape_tuple(values.shape), "dtype"_any = dtype_str(values.dtype));
  const Tensor made = as_tensor(given, {.call = "initializer", .dtype = values.dtype});
  if (made.is_symbolic() || made.dtype() != values.dtype || made.shape() != values.shape) {
    throw ArgumentError(message("[initializer] it returned ", dtype_name(made.dtype()),
                                " of shape ", to_string(made.shape()), ", expected ",
                                dtype_name(values.dtype), " of shape ", to_string(values.shape)));
  }
  made.device().download(values.data, made.value().data(), values.size_bytes());
}

// Every tensor that it fills gets its own random stream, so that equal shapes differ.
Initializer with_own_seed(Initializer function, std::uint64_t seed) {
  const auto filled = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [function = std::move(function), seed, filled](ArrayView values, RandomStream&) {
    RandomStream random(seed, (*filled)++);
    function(values, random);
  };
}

}  // namespace

Tensor call_on_tensor(const Kept& function, const Tensor& tensor, const char* call) {
  const nb::gil_scoped_acquire lock;
  const nb::object result = function.get()(tensor);
  return result.is_none() ? Tensor() : as_tensor(result, {.call = call, .dtype = tensor.dtype()});
}

std::function<Tensor(const Tensor&)> as_tensor_function(nb::handle function, const char* call) {
  if (function.is_none()) return {};
  if (!PyCallable_Check(function.ptr())) {
    throw TypeError(
        message("[", call, "] ", quoted_type(function), ", expected a function of a Tensor"));
  }
  return PythonTensorFunction{Kept(nb::borrow(function)), call};
}

Initializer as_initializer(nb::handle function) {
  if (function.is_none()) return {};
  const NativeInitializer* native = nullptr;
  if (nb::try_cast<const NativeInitializer*>(function, native) && native) {
    return PythonInitializer{Kept(nb::borrow(function)), native->function};
  }
  const nb::object made =
      PyType_Check(function.ptr()) ? function() : nb::borrow(function);  // a class, as in Keras
  if (made.ptr() != function.ptr()) return as_initializer(made);
  if (!PyCallable_Check(function.ptr())) {
    throw TypeError(message("[initializer] ", quoted_type(function),
                            " is given, expected a function of (shape, dtype)"));
  }
  return PythonInitializer{Kept(made), {}};
}

nb::object python_of(const std::function<Tensor(const Tensor&)>& function) {
  const auto* const python = function.target<PythonTensorFunction>();
  return python ? nb::borrow(python->function.get()) : nb::none();
}

nb::object python_of(const Initializer& initializer) {
  const auto* const python = initializer.target<PythonInitializer>();
  return python ? nb::borrow(python->function.get()) : nb::none();
}

void bind_initializers(nb::module_& m) {
  nb::class_<NativeInitializer>(m, "NativeInitializer", nb::dynamic_attr(),
                                "Fills new variables; its random numbers depend on the seed that "
                                "the layer or variable has.")
      .def(
          "__init__",
          [](NativeInitializer* self, const std::string& kind, double first, double second,
             std::optional<std::uint64_t> seed) {
            Initializer function;
            if (kind == "constant") function = constant_initializer(first);
            if (kind == "glorot_uniform") function = glorot_uniform_initializer();
            if (kind == "random_uniform") function = random_uniform_initializer(first, second);
            if (kind == "random_normal") function = random_normal_initializer(first, second);
            if (!function) throw ArgumentError("[initializer] unknown kind '" + kind + "'");
            if (seed) function = with_own_seed(std::move(function), *seed);
            new (self) NativeInitializer{std::move(function)};
          },
          "kind"_a, "first"_a = 0.0, "second"_a = 0.0, "seed"_a = nb::none())
      .def(
          "fill",
          [](const NativeInitializer& self, nb::handle shape, nb::handle dtype,
             std::uint64_t seed) {
            Array values(as_dtype(dtype), as_shape("initializer", shape));
            RandomStream random(seed);
            self.function(values.view(), random);
            return Tensor(values.view());
          },
          "shape"_any, "dtype"_any, "seed"_a);
}

}  // namespace openrnn::python
