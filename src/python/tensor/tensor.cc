#include <nanobind/ndarray.h>

#include "cpu/device/cpu_device.h"
#include "openrnn/ops.h"
#include "python/support/buffer.h"
#include "python/tensor/members.h"

namespace openrnn::python {
namespace {

// Its 16-bit words under ml_dtypes' name, read-only.
nb::object bfloat16_array(DeviceArray array) {
  const nb::object dtype = numpy_dtype(DType::kBfloat16);
  const std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  static const std::uint16_t nothing = 0;
  const auto* const data =
      array.size() ? static_cast<const std::uint16_t*>(array.data()) : &nothing;
  const nb::capsule owner(new DeviceArray(std::move(array)),
                          [](void* held) noexcept { delete static_cast<DeviceArray*>(held); });
  const nb::ndarray<nb::numpy, const std::uint16_t> words(data, shape.size(), shape.data(), owner);
  return nb::cast(words).attr("view")(dtype);
}

nb::object array_protocol(nb::handle self, nb::handle dtype, nb::handle copy) {
  const Tensor& tensor = with_value(nb::cast<const Tensor&>(self), "__array__");
  const nb::object array = as_numpy(tensor);
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    return dtype.is_none() ? array.attr("copy")() : array.attr("astype")(dtype);
  }
  return dtype.is_none() ? array : array.attr("astype")(dtype, "copy"_any = false);
}

nb::object dlpack(const Tensor& self, nb::handle stream, nb::handle max_version,
                  nb::handle dl_device, nb::handle copy) {
  return to_dlpack(with_value(self, "__dlpack__"), {stream, max_version, dl_device, copy});
}

Tensor copied(const Tensor& tensor) {
  DeviceArray array = tensor.value();
  array.make_unique_owner();
  return tensor.placed() ? Tensor(std::move(array))
                         : Tensor::of_host(std::move(array), cpu_device());
}

// Host data on the cpu, whatever the default device is.
Tensor on_the_host(const Tensor& tensor) {
  return Tensor::of_host(on_device(tensor.value(), cpu_device()), cpu_device());
}

// A NumPy copy where memory cannot be shared as it is: strides, other byte orders.
Tensor from_dlpack(nb::handle value, nb::handle device, nb::handle copy) {
  const bool may_copy = copy.is_none() || nb::cast<bool>(copy);
  std::optional<Tensor> view = view_of_dlpack(value);
  if (!view && !may_copy) {
    throw nb::buffer_error(
        "[from_dlpack] copy is False for memory that is not row-major or of "
        "another dtype, expected None");
  }
  if (!view) view = on_the_host(as_tensor(value, {.call = "from_dlpack"}));
  const Device* const place = as_device(device);
  if (!may_copy && place && place != &view->device()) {
    throw nb::buffer_error("[from_dlpack] copy is False for another device, expected None");
  }
  if (!copy.is_none() && may_copy) view = copied(*view);
  return place ? view->to(*place) : *view;
}

Tensor moved(const Tensor& tensor, nb::handle name) {
  const Device* const place = as_device(name);
  if (!place) throw TypeError("[to] the device is None, expected a name such as 'gpu:0'");
  return tensor.to(*place);
}

// For pickle. A placed tensor returns to its device.
nb::tuple reduced(nb::handle self) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  if (tensor.is_symbolic()) {
    return nb::make_tuple(nb::module_::import_("openrnn._copies").attr("make_symbolic"),
                          nb::module_::import_("openrnn._core").attr("symbolic_state")(self));
  }
  if (tensor.state_layout() != StateLayout::kUnknown) {
    Tensor bare = Tensor(tensor).with_state_layout(StateLayout::kUnknown);
    return nb::make_tuple(nb::module_::import_("openrnn._copies").attr("make_state"),
                          nb::make_tuple(std::move(bare), static_cast<int>(tensor.state_layout())));
  }
  nb::object make = nb::borrow(self.type());
  if (tensor.placed()) {
    make = nb::module_::import_("functools")
               .attr("partial")(make, "device"_any = device_str(tensor.device()));
  }
  return nb::make_tuple(make, nb::make_tuple(as_numpy(tensor)));
}

std::string repr(const Tensor& tensor) {
  const std::string about = nb::cast<std::string>(nb::str(shape_tuple(tensor.shape()))) +
                            ", dtype=" + std::string(dtype_name(tensor.dtype()));
  if (tensor.is_symbolic()) return "<openrnn.Tensor symbolic, shape=" + about + ">";
  const std::string where =
      tensor.device().engine() ? ", device=" + std::string(tensor.device().name()) : "";
  return "<openrnn.Tensor shape=" + about + where + ", numpy=\n" + repr_of_value(tensor) + ">";
}

void bind_value(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "__init__",
          [](Tensor* self, nb::handle value, nb::handle dtype, nb::handle device) {
            new (self) Tensor(make_tensor(value, dtype, as_device(device)));
          },
          "value"_any, "dtype"_any = nb::none(), nb::kw_only(), "device"_any = nb::none())
      .def_prop_ro(
          "shape", [](const Tensor& self) { return shape_tuple(self.shape()); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def_prop_ro("is_symbolic", &Tensor::is_symbolic,
                   "Whether it has no value yet: an Input, or what descends from one.")
      .def_prop_ro("is_tracked", &Tensor::tracked,
                   "Whether a gradient flows through it: recorded, watched, or read from a "
                   "trainable variable.")
      .def(
          "numpy", [](const Tensor& self) { return as_numpy(with_value(self, "numpy")); },
          nb::sig("def numpy(self) -> NDArray[typing.Any]"),
          "The value as a read-only NumPy array: of the same memory, or on a GPU of a copy.")
      .def("__array__", &array_protocol, "dtype"_any = nb::none(), "copy"_any = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "NDArray[typing.Any]"))
      .def("__dlpack__", &dlpack, nb::kw_only(), "stream"_any = nb::none(),
           "max_version"_any = nb::none(), "dl_device"_any = nb::none(), "copy"_any = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                   "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                   "None = None) -> typing.Any"))
      .def(
          "__dlpack_device__",
          [](const Tensor& self) {
            return dlpack_device(with_value(self, "__dlpack_device__").device());
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", &repr)
      .def("__reduce__", &reduced, nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

void bind_place(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_ro(
          "device",
          [](const Tensor& self) { return device_str(with_value(self, "device").device()); },
          nb::sig("def device(self) -> str"),
          "The device of the value: 'cpu', 'gpu:0'. Raises TypeError for a symbolic tensor.")
      .def(
          "to", [](const Tensor& self, nb::handle device) { return moved(self, device); },
          "device"_a, nb::sig("def to(self, device: str) -> Tensor"),
          "The value on that device, a copy unless it is there. Gradients flow back.")
      .def(
          "cpu", [](const Tensor& self) { return self.to(cpu_device()); },
          "The same as to('cpu').");
}

nb::object arithmetic(Arithmetic op, nb::handle a, nb::handle b) {
  if (!is_operand(a) || !is_operand(b)) return nb::borrow(Py_NotImplemented);
  return nb::cast(combine(op, a, b));
}

template <Arithmetic op>
void bind_operator(nb::class_<Tensor>& tensor, const char* name, const char* reflected) {
  const std::string text = std::string("(self, other: object, /) -> Tensor");
  tensor.def(
      name, [](nb::handle a, nb::handle b) { return arithmetic(op, a, b); },
      nb::sig(("def " + std::string(name) + text).c_str()));
  tensor.def(
      reflected, [](nb::handle a, nb::handle b) { return arithmetic(op, b, a); },
      nb::sig(("def " + std::string(reflected) + text).c_str()));
}

void bind_operators(nb::class_<Tensor>& tensor) {
  bind_operator<Arithmetic::kAdd>(tensor, "__add__", "__radd__");
  bind_operator<Arithmetic::kSubtract>(tensor, "__sub__", "__rsub__");
  bind_operator<Arithmetic::kMultiply>(tensor, "__mul__", "__rmul__");
  bind_operator<Arithmetic::kDivide>(tensor, "__truediv__", "__rtruediv__");
  tensor
      .def(
          "__matmul__", [](const Tensor& a, nb::handle b) { return matmul(a, as_operand(b, a)); },
          nb::sig("def __matmul__(self, other: object, /) -> Tensor"))
      .def(
          "__rmatmul__", [](const Tensor& b, nb::handle a) { return matmul(as_operand(a, b), b); },
          nb::sig("def __rmatmul__(self, other: object, /) -> Tensor"))
      .def("__neg__", [](const Tensor& x) { return ops::negate(x); })
      .def("__abs__", [](const Tensor& x) { return ops::absolute(x); });
}

}  // namespace

nb::object as_numpy(const Tensor& tensor) {
  static const nb::handle asarray = nb::object(numpy().attr("asarray")).release();
  const bool here = tensor.is_symbolic() || tensor.empty() || !tensor.device().engine();
  const Tensor host = here ? tensor : Tensor(on_device(tensor.value(), cpu_device()));
  const bool bits = !host.is_symbolic() && host.dtype() == DType::kBfloat16;
  return bits ? bfloat16_array(host.value()) : nb::object(asarray(nb::cast(host)));
}

// Without ml_dtypes too.
std::string repr_of_value(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBfloat16) return nb::cast<std::string>(nb::repr(as_numpy(tensor)));
  const Array wide = cast(tensor.to_host().view(), DType::kFloat32);
  std::string text = nb::cast<std::string>(nb::repr(as_numpy(wide)));
  const std::string name = "float32";
  return text.replace(text.rfind(name), name.size(), "bfloat16");
}

nb::object as_numpy(const Array& array) { return as_numpy(Tensor(array.view(), cpu_device())); }

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(
      m, "Tensor", nb::type_slots(tensor_slots), nb::is_weak_referenceable(),
      "A value that never changes, with the history that a GradientTape recorded; or a symbolic "
      "one, which a Model will give a value. Making one copies.\n\n"
      "Examples\n--------\n"
      ">>> x = openrnn.Tensor([1.0, 2.0])\n"
      ">>> (2.0 * x + 1.0).numpy(), x.shape, x[1:].sum().item()\n"
      "(array([3., 5.], dtype=float32), (2,), 2.0)");
  bind_value(tensor);
  bind_place(tensor);
  bind_operators(tensor);
  bind_protocols(tensor);
  bind_members(tensor);
  m.def(
      "state_in_layout",
      [](const Tensor& state, int layout) {
        return Tensor(state).with_state_layout(static_cast<StateLayout>(layout));
      },
      "state"_a, "layout"_a);
  m.def("from_dlpack", &from_dlpack, "x"_any, "device"_any = nb::none(), "copy"_any = nb::none());
}

}  // namespace openrnn::python
