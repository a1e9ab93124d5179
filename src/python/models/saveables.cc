// Saveables and converters.
#include "openrnn/saveables.h"

#include "base/message.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

using Spec = SaveableObject::Spec;

void restore(const SaveableObject& self, nb::handle tensors, nb::handle) {
  self.restore(as_arrays(tensors, {.call = "restore", .dtype = self.variable().dtype()}));
}

std::string scope_text(nb::handle scope) {
  if (scope.is_none()) return {};
  if (nb::isinstance<nb::str>(scope)) return nb::cast<std::string>(scope);
  if (nb::hasattr(scope, "name")) return nb::cast<std::string>(scope.attr("name"));
  throw TypeError(message("[Saveable] scope is ", quoted_type(scope),
                          ", expected a string or a variable scope"));
}

template <class T>
void bind_cudnn_saveable(nb::module_& m, const char* class_name, const char* example) {
  const std::string doc = message(
      "Stores an opaque buffer as the tensors of its cells.\n\n"
      "network: any other option of the network (openrnn.network_options()), as its layer has it."
      "\n\nExamples\n--------\n",
      example);
  nb::class_<T, CudnnRnnSaveable>(m, class_name, doc.c_str())
      .def(
          "__init__",
          [class_name](T* self, const Variable& opaque_params, std::int64_t num_layers,
                       std::int64_t num_units, std::int64_t input_size,
                       const std::string& input_mode, const std::string& direction,
                       nb::handle scope, const std::string& name,
                       std::optional<std::int64_t> num_proj, const nb::kwargs& options) {
            require_fields(message(class_name, ".__init__"), options, {"rnn_mode", "dtype"});
            RnnSpec network = as_network(class_name, options);
            network.num_layers = num_layers;
            network.num_units = num_units;
            network.input_size = input_size;
            network.input_mode = parse_input_mode(input_mode);
            network.direction = parse_direction(direction);
            network.num_proj = num_proj.value_or(0);
            new (self)
                T(opaque_params, {.network = network, .scope = scope_text(scope), .name = name});
          },
          "opaque_params"_any, "num_layers"_a, "num_units"_a, "input_size"_a,
          "input_mode"_a = "linear_input", "direction"_a = "unidirectional",
          "scope"_any = nb::none(), "name"_a = "cudnn_rnn_saveable", nb::kw_only(),
          "num_proj"_a = nb::none(), "network"_a,
          nb::sig("def __init__(self, opaque_params: Variable | None, num_layers: int, "
                  "num_units: int, input_size: int, input_mode: str = 'linear_input', "
                  "direction: str = 'unidirectional', scope: object | None = None, "
                  "name: str = 'cudnn_rnn_saveable', *, num_proj: int | None = None, "
                  "**network: typing.Any) -> None"));
}

void bind_saveable_classes(nb::module_& m) {
  nb::class_<Spec>(m, "SaveSpec", "One named tensor of a saveable.")
      .def_ro("name", &Spec::name)
      .def_prop_ro("tensor", [](const Spec& self) { return Tensor(self.tensor.view()); })
      .def_prop_ro("slice_spec", [](const Spec&) { return ""; })
      .def_prop_ro("dtype", [](const Spec& self) { return dtype_name(self.tensor.dtype()); });
  nb::class_<SaveableObject>(m, "SaveableObject", nb::dynamic_attr(), nb::is_weak_referenceable(),
                             "Something that a Saver stores as several named tensors.")
      .def_prop_ro("name", &SaveableObject::name)
      .def_prop_ro("op", &SaveableObject::variable, "The variable that it stands for.")
      .def_prop_ro("specs", &SaveableObject::specs, "The named tensors of the value now.")
      .def("restore", &restore, "restored_tensors"_any, "restored_shapes"_a = nb::none(),
           nb::sig("def restore(self, restored_tensors: typing.Sequence[object], "
                   "restored_shapes: object = None) -> None"),
           "Assigns the value made of these tensors, in the order of `specs`, to the variable.")
      .def("__repr__", [](const SaveableObject& self) {
        return "<openrnn saveable '" + self.name() + "' of '" + self.variable().name() + "'>";
      });
  const nb::class_<CudnnRnnSaveable, SaveableObject> shared(
      m, "CudnnOpaqueParamsSaveable",
      "What the four Saveables share.\n\n"
      "Examples\n--------\n"
      ">>> gru = openrnn.cudnn_rnn.CudnnGRU(1, 4)\n"
      ">>> gru.build((None, None, 3))\n"
      ">>> isinstance(gru.saveable, openrnn.cudnn_rnn.CudnnOpaqueParamsSaveable)\n"
      "True");
  bind_cudnn_saveable<CudnnLSTMSaveable>(
      m, "CudnnLSTMSaveable",
      ">>> params = openrnn.Variable(np.zeros(144, \"float32\"), name=\"params\")\n"
      ">>> saveable = openrnn.cudnn_rnn.CudnnLSTMSaveable(params, 1, 4, 3)\n"
      ">>> [spec.tensor.shape for spec in saveable.specs]\n"
      "[(7, 16), (16,)]");
  bind_cudnn_saveable<CudnnGRUSaveable>(
      m, "CudnnGRUSaveable",
      ">>> params = openrnn.Variable(np.zeros(108, \"float32\"), name=\"params\")\n"
      ">>> saveable = openrnn.cudnn_rnn.CudnnGRUSaveable(params, 1, 4, 3)\n"
      ">>> [spec.tensor.shape for spec in saveable.specs]\n"
      "[(7, 8), (3, 4), (4, 4), (8,), (4,), (4,)]");
  bind_cudnn_saveable<CudnnRNNTanhSaveable>(
      m, "CudnnRNNTanhSaveable",
      ">>> params = openrnn.Variable(np.zeros(36, \"float32\"), name=\"params\")\n"
      ">>> saveable = openrnn.cudnn_rnn.CudnnRNNTanhSaveable(params, 1, 4, 3)\n"
      ">>> saveable.specs[0].name\n"
      "'rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel'");
  bind_cudnn_saveable<CudnnRNNReluSaveable>(
      m, "CudnnRNNReluSaveable",
      ">>> params = openrnn.Variable(np.zeros(36, \"float32\"), name=\"params\")\n"
      ">>> saveable = openrnn.cudnn_rnn.CudnnRNNReluSaveable(params, 1, 4, 3)\n"
      ">>> [spec.tensor.shape for spec in saveable.specs]\n"
      "[(7, 4), (4,)]");
}

/// A converter of any of the four modes.
struct Converter {
  std::shared_ptr<const CudnnParamsFormatConverter> core;
};

Converter make_converter(const RnnSpec& network) {
  switch (network.mode) {
    case RnnMode::kLstm:
      return {std::make_shared<CudnnParamsFormatConverterLSTM>(network)};
    case RnnMode::kGru:
      return {std::make_shared<CudnnParamsFormatConverterGRU>(network)};
    case RnnMode::kRnnTanh:
      return {std::make_shared<CudnnParamsFormatConverterTanh>(network)};
    default:
      return {std::make_shared<CudnnParamsFormatConverterRelu>(network)};
  }
}

std::vector<Tensor> tensors_of(const std::vector<Array>& arrays) {
  std::vector<Tensor> tensors;
  for (const Array& array : arrays) tensors.emplace_back(array.view());
  return tensors;
}

Tensor to_opaque(const Converter& self, nb::handle tf_canonicals, nb::handle weights_proj) {
  const AsTensor how{.call = "tf_canonical_to_opaque"};
  const std::vector<Array> tensors = as_arrays(tf_canonicals, how);
  const std::vector<Array> proj =
      weights_proj.is_none() ? std::vector<Array>{} : as_arrays(weights_proj, how);
  const std::vector<ConstArrayView> tensor_views = views(tensors), proj_views = views(proj);
  return Tensor(self.core->tf_canonical_to_opaque(tensor_views, proj_views).view());
}

void bind_converters(nb::module_& m) {
  nb::class_<Converter>(m, "Converter", nb::dynamic_attr(), "What the four converters share.")
      .def(
          "__init__",
          [](Converter* self, const std::string& call, const nb::dict& network) {
            new (self) Converter(make_converter(as_network(call.c_str(), network)));
          },
          "call"_a, "network"_a,
          nb::sig("def __init__(self, call: str, network: dict[str, typing.Any]) -> None"))
      .def("to_opaque", &to_opaque, "tf_canonicals"_any, "weights_proj"_any)
      .def(
          "from_opaque",
          [](const Converter& self, nb::handle opaque_params) {
            const Array params =
                as_tensor(opaque_params, {.call = "opaque_to_tf_canonical"}).to_host();
            const TfCanonicalParams found = self.core->opaque_to_tf_canonical(params.view());
            return std::tuple(tensors_of(found.weights), tensors_of(found.biases),
                              tensors_of(found.weights_proj));
          },
          "opaque_params"_any);
}

}  // namespace

void bind_saveables(nb::module_& m) {
  bind_saveable_classes(m);
  bind_converters(m);
}

}  // namespace openrnn::python
