// Conversion of Python values to those of the library, and back.
#pragma once

#include "python/support/common.h"

namespace openrnn::python {

/// "'list'", for messages.
std::string quoted_type(nb::handle value);

/// Whether a tensor may be a view of the caller's memory, for the duration of one call.
enum class Memory : std::uint8_t { kCopy, kBorrow };

struct AsTensor {
  /// Prefix of errors.
  const char* call = "tensor";
  /// Of values that are no Tensor: converted to it. Unset: their own (Python's floats are float32,
  /// its integers int32).
  std::optional<DType> dtype = {};
  Memory memory = Memory::kCopy;
};

/// A Tensor or Variable as it is; anything with the buffer protocol, DLPack or __array__, numbers
/// and nested lists by value. Throws: TypeError for anything else.
Tensor as_tensor(nb::handle value, const AsTensor& how);
/// Whether it is a symbolic tensor, or a tuple that holds one: then a call keeps its arguments.
bool is_symbolic(nb::handle value);
/// None is an empty tensor.
Tensor as_optional_tensor(nb::handle value, const AsTensor& how);
std::vector<Tensor> as_tensors(nb::handle values, const AsTensor& how);
std::vector<Array> as_arrays(nb::handle values, const AsTensor& how);

std::vector<ConstArrayView> views(const std::vector<Array>& arrays);

/// 'cpu', 'gpu:0'; null for None. Throws: TypeError, and as openrnn::device.
const Device* as_device(nb::handle device);
nb::str device_str(const Device& device);

/// 'float32', numpy.float32, a NumPy dtype, or a Python type. Throws: TypeError, ArgumentError.
DType as_dtype(nb::handle dtype);
std::optional<DType> as_optional_dtype(nb::handle dtype);
nb::str dtype_str(DType dtype);
/// Whether the package ml_dtypes is installed; NumPy knows its bfloat16 from then on.
bool has_ml_dtypes();
/// NumPy's dtype. Throws: UnsupportedError for bfloat16 without the package ml_dtypes.
nb::object numpy_dtype(DType dtype);

/// Integers, None for -1; anything with `as_list()` (a TensorShape) too. Throws: TypeError.
Shape as_shape(const char* call, nb::handle shape);
/// (2, None, 3).
nb::tuple shape_tuple(const Shape& shape);
nb::list shape_list(const Shape& shape);

/// [B] integers, None for unset. Throws: TypeError, ArgumentError.
std::optional<std::vector<std::int32_t>> as_lengths(const char* call, nb::handle lengths);
/// (whether to keep anything, ForwardArgs::recompute) of False, True, 'inputs' or a number of
/// steps. Throws: ArgumentError for another value.
std::pair<bool, std::int64_t> as_save(std::string_view call, nb::handle save);
/// Into the options of a call: a symbolic tensor as it is, else the values.
template <class Options>
void set_lengths(Options& options, const char* call, nb::handle lengths) {
  if (lengths.is_none()) return;
  const Tensor* tensor = nullptr;
  if (nb::try_cast<const Tensor*>(lengths, tensor) && tensor && tensor->is_symbolic()) {
    options.lengths = *tensor;
  } else {
    options.sequence_lengths = as_lengths(call, lengths);
  }
}
/// False, True, 'inputs' or a number of steps, into the options of a call: what it keeps for
/// gradients. Throws: ArgumentError for another value.
template <class Options>
void set_save(Options& options, std::string_view call, nb::handle save) {
  const auto [keeps, recompute] = as_save(call, save);
  options.save = keeps;
  options.recompute = recompute;
}
std::vector<Variable> as_variables(const char* call, nb::handle variables);
/// A Python value as T. Throws: TypeError naming the argument.
template <class T>
T as_value(const char* name, nb::handle value) {
  T result{};
  if (!nb::try_cast<T>(value, result)) {
    throw TypeError(std::string("[arguments] ") + name + " is " + quoted_type(value) +
                    ", expected " +
                    (std::is_same_v<T, bool>       ? "True or False"
                     : std::is_integral_v<T>       ? "an integer"
                     : std::is_floating_point_v<T> ? "a number"
                                                   : "a string"));
  }
  return result;
}

/// True or False: a bool, 0 or 1, or a scalar tensor or array of one of them. Throws: TypeError.
bool as_flag(const char* call, const char* name, nb::handle value);
/// An integer, or anything with __index__. Throws: TypeError.
std::int64_t as_int(const char* call, nb::handle value);
std::optional<std::int64_t> as_optional_int(nb::handle value);

/// A read-only NumPy array that shares the tensor's memory, or that of a host copy of a GPU tensor.
/// Throws: StateError when symbolic, and as numpy_dtype.
nb::object as_numpy(const Tensor& tensor);
nb::object as_numpy(const Array& array);
/// Its text, of any dtype.
std::string repr_of_value(const Tensor& tensor);
/// The NumPy module.
nb::handle numpy();

/// Calls a Python function on tensors, with the interpreter lock.
Tensor call_on_tensor(const Kept& function, const Tensor& tensor, const char* call);
/// A callable, or None for an empty function. Throws: TypeError.
std::function<Tensor(const Tensor&)> as_tensor_function(nb::handle function, const char* call);
/// A function of (shape, dtype), one of the library's own, or None for the default.
Initializer as_initializer(nb::handle function);
/// What as_tensor_function or as_initializer was given; None where it was something else.
nb::object python_of(const std::function<Tensor(const Tensor&)>& function);
nb::object python_of(const Initializer& initializer);

}  // namespace openrnn::python
