// ONNX models that run.
#include "openrnn/onnx.h"

#include "openrnn/runtime.h"
#include "python/support/convert.h"

namespace openrnn::python {
namespace {

// Names with (dtype, shape); None for what the model does not say.
nb::dict described(const std::vector<OnnxValueInfo>& values) {
  nb::dict result;
  for (const OnnxValueInfo& value : values) {
    const std::optional<DType> dtype = dtype_of_onnx(value.element_type);
    nb::object name = nb::none(), shape = nb::none();
    if (dtype) name = dtype_str(*dtype);
    if (value.shape) {
      Shape sizes;
      for (const OnnxDim& dim : *value.shape) sizes.push_back(dim.size < 0 ? -1 : dim.size);
      shape = shape_tuple(sizes);
    }
    result[value.name.c_str()] = nb::make_tuple(name, shape);
  }
  return result;
}

// Values that are no tensors take the dtype that the model asks for.
nb::dict run_onnx(const OnnxProgram& program, const nb::dict& given) {
  std::map<std::string, Array> arrays;
  for (const auto [key, value] : given) {
    const auto name = as_value<std::string>("a name of inputs", key);
    std::optional<DType> dtype;
    for (const OnnxValueInfo& input : program.inputs()) {
      if (input.name == name) dtype = dtype_of_onnx(input.element_type);
    }
    const AsTensor how{.call = "onnx", .dtype = dtype};
    arrays.insert_or_assign(name, std::move(as_arrays(nb::make_tuple(value), how).at(0)));
  }
  const std::map<std::string, Array> outputs = unlocked([&] {
    std::map<std::string, ConstArrayView> views;
    for (const auto& [name, array] : arrays) views.emplace(name, array.view());
    return program.run(views);
  });
  nb::dict result;
  for (const OnnxValueInfo& output : program.outputs()) {
    const Tensor tensor(outputs.at(output.name).view(), device("cpu"));
    result[output.name.c_str()] = nb::cast(tensor);
  }
  return result;
}

}  // namespace

void bind_onnx(nb::module_& m) {
  nb::class_<OnnxProgram>(m, "OnnxProgram",
                          "The graph of an ONNX model, computed by this library.\n\n"
                          "Any number of threads may call it at once.\n\n"
                          "Examples\n--------\n"
                          ">>> gru = openrnn.layers.GRU(4)\n"
                          ">>> gru.build((None, None, 3))\n"
                          ">>> openrnn.save(\"gru.onnx\", gru)\n"
                          ">>> program = openrnn.onnx.load(\"gru.onnx\")\n"
                          ">>> program.inputs, list(program.outputs)\n"
                          "({'x': ('float32', (None, None, 3))}, ['y', 'h'])")
      .def(
          "__init__",
          [](OnnxProgram* self, const std::string& path) {
            unlocked([&] { new (self) OnnxProgram(path); });
          },
          "path"_a, nb::sig("def __init__(self, path: str) -> None"))
      .def_prop_ro(
          "inputs", [](const OnnxProgram& self) { return described(self.inputs()); },
          nb::sig(
              "def inputs(self) -> dict[str, tuple[str | None, tuple[int | None, ...] | None]]"),
          "(dtype, shape) by name of what a call is given; None for what the model does not say.")
      .def_prop_ro(
          "outputs", [](const OnnxProgram& self) { return described(self.outputs()); },
          nb::sig(
              "def outputs(self) -> dict[str, tuple[str | None, tuple[int | None, ...] | None]]"),
          "The same of what it returns.")
      .def("__call__", &run_onnx, "inputs"_a,
           nb::sig("def __call__(self, inputs: dict[str, typing.Any]) -> dict[str, Tensor]"),
           "The outputs by name, on the cpu and without history.\n\n"
           "inputs: an array, or anything else that becomes one, by name.\n"
           "Raises: ValueError for an input that is missing, unknown or of another dtype, and for "
           "shapes that do not fit a node, naming it.");
  m.def("onnx_operators", &onnx_operators);
}

}  // namespace openrnn::python
