#include "base/message.h"
#include "openrnn/ops.h"
#include "python/tensor/members.h"

namespace openrnn::python {
namespace {

Variable make_variable(nb::handle initial_value, bool trainable,
                       const std::optional<std::string>& name, nb::handle dtype,
                       const Device* device) {
  const nb::object value =
      PyCallable_Check(initial_value.ptr()) && !nb::isinstance<Tensor>(initial_value)
          ? initial_value()
          : nb::borrow(initial_value);
  const Tensor initial = make_tensor(value, dtype);
  if (initial.is_symbolic()) {
    throw TypeError("[Variable] the initial value is a symbolic tensor, expected one with a value");
  }
  Graph& graph = Graph::current();
  const std::string& scope = VariableScope::current_name();
  const std::string prefix = scope.empty() ? "" : scope + "/";
  std::string unique;
  do {
    unique = graph.unique_name(scope, name.value_or("Variable"));
  } while (graph.has_variable(prefix + unique));
  // A placed value stays on its device.
  if (!device && initial.placed()) device = &initial.device();
  return Variable(unique, initial.to_host(), trainable, device);
}

DeviceArray assigned(const char* call, const Variable& variable, nb::handle value) {
  const Tensor given = as_tensor(value, {.call = call, .dtype = variable.dtype()});
  if (given.is_symbolic()) {
    throw TypeError(message("[", call, "] a symbolic tensor, expected one with a value"));
  }
  return given.value();
}

nb::object array_of_value(const Variable& variable, nb::handle dtype, nb::handle copy) {
  const nb::object array = as_numpy(variable.read());
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    return dtype.is_none() ? array.attr("copy")() : array.attr("astype")(dtype);
  }
  return dtype.is_none() ? array : array.attr("astype")(dtype, "copy"_any = false);
}

void bind_value(nb::class_<Variable>& variable) {
  variable
      .def(
          "__init__",
          [](nb::pointer_and_handle<Variable> self, nb::handle initial_value, bool trainable,
             const std::optional<std::string>& name, nb::handle dtype, nb::handle device) {
            new (self.p)
                Variable(make_variable(initial_value, trainable, name, dtype, as_device(device)));
            remember(identity_of(*self.p), self.h);
          },
          "initial_value"_any, "trainable"_a = true, "name"_a = nb::none(),
          "dtype"_any = nb::none(), nb::kw_only(), "device"_any = nb::none())
      .def_prop_ro("name", &Variable::name, "The full name, with the scopes that it was made in.")
      .def_prop_ro(
          "shape", [](const Variable& self) { return shape_tuple(self.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("trainable", &Variable::trainable)
      .def_prop_ro(
          "device", [](const Variable& self) { return device_str(self.device()); },
          nb::sig("def device(self) -> str"), "Its device, which never changes: 'cpu', 'gpu:0'.")
      .def_prop_ro("version", &Variable::version, "Grows with every change.")
      .def("read_value", &Variable::read, "The value now, as a Tensor.")
      .def(
          "numpy", [](const Variable& self) { return as_numpy(self.read()); },
          nb::sig("def numpy(self) -> NDArray[typing.Any]"),
          "The value now, as a read-only NumPy array that later changes leave alone.")
      .def("__array__", &array_of_value, "dtype"_any = nb::none(), "copy"_any = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "NDArray[typing.Any]"))
      .def(
          "__copy__", [](nb::object self) { return self; },
          nb::sig("def __copy__(self) -> Variable"))
      .def(
          "__reduce__",
          [](nb::handle self) {
            const nb::module_ copies = nb::module_::import_("openrnn._copies");
            return nb::make_tuple(
                copies.attr("make_variable"),
                nb::module_::import_("openrnn._core").attr("variable_state")(self));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__repr__", [](const Variable& self) {
        return message("<openrnn.Variable '", self.name(),
                       "' shape=", nb::cast<std::string>(nb::str(shape_tuple(self.shape()))),
                       ", dtype=", dtype_name(self.dtype()), ", numpy=\n",
                       repr_of_value(self.read()), ">");
      });
}

void bind_dlpack(nb::class_<Variable>& variable) {
  variable
      .def(
          "__dlpack__",
          [](const Variable& self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
             nb::handle copy) {
            return to_dlpack(self.read(), {stream, max_version, dl_device, copy});
          },
          nb::kw_only(), "stream"_any = nb::none(), "max_version"_any = nb::none(),
          "dl_device"_any = nb::none(), "copy"_any = nb::none(),
          nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, "
                  "int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | "
                  "None = None) -> typing.Any"))
      .def(
          "__dlpack_device__", [](const Variable& self) { return dlpack_device(self.device()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

void bind_change(nb::class_<Variable>& variable, const char* name,
                 void (Variable::*change)(DeviceArray) const, const char* doc) {
  variable.def(
      name,
      [name, change](nb::object self, nb::handle value) {
        const auto& target = nb::cast<const Variable&>(self);
        (target.*change)(assigned(name, target, value));
        return self;
      },
      "value"_any,
      nb::sig(("def " + std::string(name) + "(self, value: object) -> Variable").c_str()), doc);
}

void bind_changes(nb::class_<Variable>& variable) {
  bind_change(variable, "assign", &Variable::assign,
              "Changes the value. Raises ArgumentError for another shape.");
  bind_change(variable, "assign_add", &Variable::assign_add,
              "Adds to the value; integers wrap. Raises ArgumentError for another shape.");
  bind_change(variable, "assign_sub", &Variable::assign_sub,
              "Subtracts from the value; integers wrap. Raises ArgumentError for another shape.");
}

template <Arithmetic op>
void bind_operator(nb::class_<Variable>& variable, const char* name, const char* reflected) {
  const auto apply = [](nb::handle a, nb::handle b) {
    if (!is_operand(a) || !is_operand(b)) return nb::borrow(Py_NotImplemented);
    return nb::cast(combine(op, a, b));
  };
  const std::string text = "(self, other: object, /) -> Tensor";
  variable.def(
      name, [apply](nb::handle a, nb::handle b) { return apply(a, b); },
      nb::sig(("def " + std::string(name) + text).c_str()));
  variable.def(
      reflected, [apply](nb::handle a, nb::handle b) { return apply(b, a); },
      nb::sig(("def " + std::string(reflected) + text).c_str()));
}

void bind_operators(nb::class_<Variable>& variable) {
  bind_operator<Arithmetic::kAdd>(variable, "__add__", "__radd__");
  bind_operator<Arithmetic::kSubtract>(variable, "__sub__", "__rsub__");
  bind_operator<Arithmetic::kMultiply>(variable, "__mul__", "__rmul__");
  bind_operator<Arithmetic::kDivide>(variable, "__truediv__", "__rtruediv__");
  variable
      .def(
          "__matmul__",
          [](const Variable& a, nb::handle b) {
            const Tensor left = a.read();
            return matmul(left, as_operand(b, left));
          },
          nb::sig("def __matmul__(self, other: object, /) -> Tensor"))
      .def(
          "__rmatmul__",
          [](const Variable& b, nb::handle a) {
            const Tensor right = b.read();
            return matmul(as_operand(a, right), right);
          },
          nb::sig("def __rmatmul__(self, other: object, /) -> Tensor"))
      .def("__neg__", [](const Variable& x) { return ops::negate(x.read()); })
      .def("__abs__", [](const Variable& x) { return ops::absolute(x.read()); });
}

}  // namespace

void bind_variable(nb::module_& m) {
  nb::class_<Variable> variable(
      m, "Variable", nb::is_weak_referenceable(),
      "A named value that training changes; it stands wherever a Tensor does. The name is made "
      "unique in the current variable scope.\n\n"
      "Examples\n--------\n"
      ">>> w = openrnn.Variable([1.0, 2.0], name=\"w\")\n"
      ">>> w.assign_add([1.0, 1.0]).numpy(), w.name\n"
      "(array([2., 3.], dtype=float32), 'w')");
  bind_value(variable);
  bind_changes(variable);
  bind_dlpack(variable);
  bind_operators(variable);
  bind_protocols(variable);
  bind_members(variable);
}

}  // namespace openrnn::python
