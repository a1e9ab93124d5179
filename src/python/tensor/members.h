// What a Tensor and a Variable have alike.
#pragma once

#include "openrnn/ops.h"
#include "python/support/dlpack.h"
#include "python/tensor/arithmetic.h"

namespace openrnn::python {

/// None, an integer or several, as a reduction names its axes.
ops::ReduceOptions as_reduction(const char* call, nb::handle axis, bool keepdims);
/// NumPy's dtype; of bfloat16 without the package ml_dtypes, its name.
nb::object dtype_object(DType dtype);
/// The only element: an int, a bool or a float.
nb::object item_of(const Tensor& tensor);
nb::object formatted(nb::handle self, const Tensor& tensor, const std::string& spec);
std::string as_html(nb::handle self);
/// Whether an element is equal to `value`.
bool contains(const Tensor& tensor, nb::handle value);
Tensor reshaped(const Tensor& tensor, const nb::args& shape);
Tensor transposed(const Tensor& tensor, const nb::args& perm);
nb::object size_of(const Tensor& tensor);
std::int64_t length_of(const Tensor& tensor);
/// Along the first axis.
std::vector<Tensor> parts_of(const Tensor& tensor);
/// Throws: TypeError for a symbolic or an empty tensor.
const Tensor& with_value(const Tensor& tensor, const char* call);

/// The module's functions of NumPy's shapes.
void bind_array_functions(nb::module_& m);

using Compare = Tensor (*)(const Tensor&, const Tensor&);
nb::object compared(Compare compare, nb::handle a, nb::handle b);

inline const Tensor& read(const Tensor& tensor) { return tensor; }
inline Tensor read(const Variable& variable) { return variable.read(); }

using Reduce = Tensor (*)(const Tensor&, const ops::ReduceOptions&);
template <Reduce reduce, class T>
void bind_reduction(nb::class_<T>& type, const char* name, const char* doc) {
  const std::string text =
      "def " + std::string(name) +
      "(self, axis: int | typing.Sequence[int] | None = None, keepdims: bool = False) -> Tensor";
  type.def(
      name,
      [name](const T& self, nb::handle axis, bool keepdims) {
        const ops::ReduceOptions options = as_reduction(name, axis, keepdims);
        return reduce(read(self), options);
      },
      "axis"_any = nb::none(), "keepdims"_a = false, nb::sig(text.c_str()), doc);
}

template <Compare compare, class T>
void bind_comparison(nb::class_<T>& type, const char* name) {
  const std::string text = "def " + std::string(name) + "(self, other: object, /) -> Tensor";
  type.def(
      name, [](nb::handle a, nb::handle b) { return compared(compare, a, b); },
      nb::sig(text.c_str()));
}

/// Of Python's own protocols.
template <class T>
void bind_protocols(nb::class_<T>& type) {
  bind_comparison<ops::less>(type, "__lt__");
  bind_comparison<ops::less_equal>(type, "__le__");
  bind_comparison<ops::greater>(type, "__gt__");
  bind_comparison<ops::greater_equal>(type, "__ge__");
  type.def("__contains__",
           [](const T& self, nb::handle value) { return contains(read(self), value); })
      .def("__len__", [](const T& self) { return length_of(read(self)); })
      .def(
          "__iter__", [](const T& self) { return nb::iter(nb::cast(parts_of(read(self)))); },
          nb::sig("def __iter__(self) -> typing.Iterator[Tensor]"))
      .def("__float__", [](const T& self) { return with_value(read(self), "float").item(); })
      .def("__int__",
           [](const T& self) { return nb::int_(item_of(with_value(read(self), "int"))); })
      .def("__bool__", [](const T& self) { return with_value(read(self), "bool").item() != 0; })
      .def(
          "__pow__",
          [](nb::handle a, nb::handle b) {
            return is_operand(b) ? nb::cast(power(a, b)) : nb::borrow(Py_NotImplemented);
          },
          nb::sig("def __pow__(self, exponent: object, /) -> Tensor"))
      .def(
          "__rpow__",
          [](nb::handle a, nb::handle b) {
            return is_operand(b) ? nb::cast(power(b, a)) : nb::borrow(Py_NotImplemented);
          },
          nb::sig("def __rpow__(self, base: object, /) -> Tensor"))
      .def(
          "__getitem__", [](const T& x, nb::handle key) { return get_item(read(x), key); },
          "key"_any, nb::sig("def __getitem__(self, key: typing.Any, /) -> Tensor"))
      .def(
          "__format__",
          [](nb::object self, const std::string& spec) {
            return formatted(self, read(nb::cast<const T&>(self)), spec);
          },
          nb::sig("def __format__(self, spec: str, /) -> str"))
      .def("_repr_html_", [](nb::object self) { return as_html(self); });
}

/// NumPy's members.
template <class T>
void bind_members(nb::class_<T>& type) {
  type.def_prop_ro(
          "dtype", [](const T& self) { return dtype_object(self.dtype()); },
          nb::sig("def dtype(self) -> NumpyDType[typing.Any]"), "NumPy's dtype.")
      .def_prop_ro("ndim", [](const T& self) { return self.shape().size(); })
      .def_prop_ro(
          "size", [](const T& self) { return size_of(read(self)); },
          nb::sig("def size(self) -> int | None"),
          "The number of elements; None where a size is not known.")
      .def_prop_ro(
          "T", [](const T& self) { return ops::transpose(read(self)); },
          "With its axes in reverse.")
      .def(
          "item", [](const T& self) { return item_of(with_value(read(self), "item")); },
          nb::sig("def item(self) -> float"),
          "The only element. Raises ArgumentError unless there is exactly one.")
      .def(
          "astype",
          [](const T& self, nb::handle dtype) {
            const Tensor x = read(self);
            const DType wanted = as_dtype(dtype);
            return x.dtype() == wanted ? x : ops::cast(x, wanted);
          },
          "dtype"_any, nb::sig("def astype(self, dtype: typing.Any) -> Tensor"),
          "In another dtype, as openrnn.cast.")
      .def(
          "reshape",
          [](const T& self, const nb::args& shape) { return reshaped(read(self), shape); },
          nb::sig("def reshape(self, *shape: typing.Any) -> Tensor"),
          "The same elements under other dimensions, of which one may be -1.")
      .def(
          "transpose",
          [](const T& self, const nb::args& axes) { return transposed(read(self), axes); },
          nb::sig("def transpose(self, *axes: typing.Any) -> Tensor"),
          "Its axes in that order, or in reverse.");
  bind_reduction<ops::reduce_sum>(type, "sum", "As openrnn.reduce_sum.");
  bind_reduction<ops::reduce_mean>(type, "mean", "As openrnn.reduce_mean.");
  bind_reduction<ops::reduce_max>(type, "max", "As openrnn.reduce_max.");
  bind_reduction<ops::reduce_min>(type, "min", "As openrnn.reduce_min.");
}

}  // namespace openrnn::python
