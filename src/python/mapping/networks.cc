// Networks of model files: the package makes layers of them.
#include <nanobind/ndarray.h>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/formats_model_file.h"
#include "openrnn/mapping_keras.h"
#include "openrnn/mapping_onnx.h"
#include "python/layers/layer_ref.h"
#include "python/support/mapped_layers.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

nb::dict all_options(const RnnSpec& spec) {
  return network_dict(spec, [](const RnnField&) { return true; });
}

// Read-only, in the array's own memory: weights of a gigabyte are not there twice.
nb::object moved_to_numpy(Array&& array) {
  static const std::uint8_t nothing = 0;
  auto* const kept = new Array(std::move(array));
  const nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<Array*>(held); });
  const auto* const data =
      kept->size() > 0 ? static_cast<const std::uint8_t*>(kept->data()) : &nothing;
  const std::size_t size = kept->size_bytes();
  const nb::ndarray<nb::numpy, const std::uint8_t> bytes(data, 1, &size, owner);
  const nb::object flat = nb::cast(bytes).attr("view")(numpy_dtype(kept->dtype()));
  return flat.attr("reshape")(nb::cast(kept->shape()));
}

nb::object array_or_none(std::optional<Array>&& array) {
  return array ? moved_to_numpy(std::move(*array)) : nb::none();
}

nb::dict network_to_python(MappedNetwork&& network) {
  nb::dict slots;
  for (auto& [name, values] : network.slots) {
    slots[nb::str(name.c_str())] = moved_to_numpy(std::move(values));
  }
  nb::dict result;
  result["name"] = network.name;
  result["options"] = all_options(network.spec);
  result["params"] = moved_to_numpy(std::move(network.params));
  result["initial_h"] = array_or_none(std::move(network.initial_h));
  result["initial_c"] = array_or_none(std::move(network.initial_c));
  result["slots"] = slots;
  result["tensors"] = network.tensors;
  return result;
}

nb::object value_to_python(const PlainValue& value) {
  return std::visit(
      [](const auto& held) -> nb::object {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, std::monostate>) {
          return nb::none();
        } else {
          return nb::cast(held);
        }
      },
      value);
}

nb::dict model_to_python(MappedModel&& model) {
  nb::list networks;
  for (MappedNetwork& network : model.networks) {
    networks.append(network_to_python(std::move(network)));
  }
  nb::dict values;
  for (const NamedValue& value : model.values) {
    values[nb::str(value.name.c_str())] = value_to_python(value.value);
  }
  nb::dict result;
  result["kind"] = model.what;
  result["file_kind"] = static_cast<int>(model.kind);
  result["networks"] = networks;
  result["layers"] = layers_to_python(model.layers);
  result["outputs"] = outputs_to_python(model.outputs);
  result["not_understood"] = model.not_understood;
  result["notes"] = model.notes;
  result["values"] = values;
  return result;
}

MappingHints as_hints(const std::optional<std::string>& rnn_mode, std::optional<bool> reset_after,
                      const std::optional<std::string>& recurrent_activation,
                      std::optional<double> forget_bias, const std::optional<nb::dict>& network) {
  MappingHints hints;
  if (rnn_mode) hints.mode = parse_rnn_mode(*rnn_mode);
  hints.reset_after = reset_after;
  if (recurrent_activation) {
    hints.recurrent_activation = parse_cell_activation(*recurrent_activation);
  }
  hints.forget_bias = forget_bias;
  if (network) hints.network = as_network("load", *network);
  return hints;
}

std::optional<Array> array_from(nb::handle value, std::optional<DType> dtype) {
  if (value.is_none()) return std::nullopt;
  return as_arrays(nb::make_tuple(value), {.call = "save", .dtype = dtype}).front();
}

MappedNetwork network_from_python(const nb::dict& given) {
  MappedNetwork network{.name = nb::cast<std::string>(given["name"]),
                        .spec = as_network("save", nb::cast<nb::dict>(given["options"]))};
  const DType dtype = network.spec.dtype;
  network.spec.compute.device = nullptr;
  network.params = *array_from(given["params"], dtype);
  network.initial_h = array_from(given["initial_h"], dtype);
  network.initial_c = array_from(given["initial_c"], dtype);
  for (const auto [name, values] : nb::cast<nb::dict>(given["slots"])) {
    // In their own dtype: an optimizer's may be wider than the weights'.
    network.slots.emplace(nb::cast<std::string>(name), *array_from(values, std::nullopt));
  }
  return network;
}

// As a double it would be rounded.
bool is_wide_integer(nb::handle value) {
  std::int64_t ignored = 0;
  return PyLong_Check(value.ptr()) && !nb::try_cast<std::int64_t>(value, ignored);
}

PlainValue value_from_python(const std::string& name, nb::handle value) {
  if (value.is_none()) return {};
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  std::int64_t whole = 0;
  if (nb::try_cast<std::int64_t>(value, whole)) return whole;
  bool wide = is_wide_integer(value);
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    for (const nb::handle one : value) wide = wide || is_wide_integer(one);
  }
  if (wide) {
    throw ArgumentError(message("[save] the value '", name,
                                "' has an integer beyond 64 bits, expected a smaller one"));
  }
  double number = 0;
  if (nb::try_cast<double>(value, number)) return number;
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  std::vector<std::int64_t> integers;
  if (nb::try_cast<std::vector<std::int64_t>>(value, integers)) return integers;
  std::vector<double> numbers;
  if (nb::try_cast<std::vector<double>>(value, numbers)) return numbers;
  std::vector<std::string> words;
  if (nb::try_cast<std::vector<std::string>>(value, words)) return words;
  throw TypeError(message("[save] the value '", name, "' is ", quoted_type(value),
                          ", expected None, a bool, a number, a string or a list of one kind"));
}

void save(const std::string& path, const nb::list& networks, const nb::dict& values,
          const std::optional<std::string>& format, int file_kind, const nb::list& layers,
          const nb::list& outputs) {
  MappedModel model{.kind = static_cast<FileKind>(file_kind)};
  model.layers = layers_from_python(layers);
  model.outputs = outputs_from_python(outputs);
  for (const nb::handle network : networks) {
    model.networks.push_back(network_from_python(nb::cast<nb::dict>(network)));
  }
  for (const auto [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    model.values.push_back({name, value_from_python(name, value)});
  }
  const ModelFormat to = format ? parse_model_format(*format) : model_format_of(path);
  unlocked([&] { save_networks(path, model, to); });
}

void check_values(const std::string& path, const std::vector<std::string>& names,
                  const std::optional<std::string>& format) {
  const ModelFormat to = format ? parse_model_format(*format) : model_format_of(path);
  for (const std::string& name : names) {
    if (holds_value(to, name)) continue;
    throw UnsupportedError(message("[save] the value '", excerpt(name), "' is given, which a '",
                                   to_string(to), "' file cannot hold, expected another format"));
  }
}

nb::list arrays_to_list(const std::vector<Array>& arrays) {
  nb::list result;
  for (const Array& array : arrays) result.append(as_numpy(array));
  return result;
}

nb::tuple from_torch(const nb::dict& options, nb::handle tensors) {
  const RnnSpec spec = as_network("canonical_from_torch", options);
  const std::vector<Array> given =
      as_arrays(tensors, {.call = "canonical_from_torch", .dtype = spec.dtype});
  const CanonicalParams canonical = canonical_from_torch(spec, views(given));
  return nb::make_tuple(arrays_to_list(canonical.weights), arrays_to_list(canonical.biases));
}

nb::dict to_torch(const nb::dict& options, nb::handle weights, nb::handle biases) {
  const RnnSpec spec = as_network("torch_from_canonical", options);
  const AsTensor how{.call = "torch_from_canonical", .dtype = spec.dtype};
  const std::vector<Array> matrices = as_arrays(weights, how), vectors = as_arrays(biases, how);
  const std::vector<Array> tensors = torch_from_canonical(spec, views(matrices), views(vectors));
  const std::vector<TorchParameter> parameters = torch_parameters(spec);
  nb::dict result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    result[nb::str(parameters[i].name.c_str())] = as_numpy(tensors[i]);
  }
  return result;
}

nb::tuple from_keras(const nb::dict& options, nb::handle weights) {
  const RnnSpec spec = as_network("canonical_from_keras", options);
  const std::vector<Array> given =
      as_arrays(weights, {.call = "canonical_from_keras", .dtype = spec.dtype});
  const CanonicalParams canonical = canonical_from_keras(spec, views(given));
  return nb::make_tuple(arrays_to_list(canonical.weights), arrays_to_list(canonical.biases));
}

nb::list to_keras(const nb::dict& options, nb::handle weights, nb::handle biases) {
  const RnnSpec spec = as_network("keras_from_canonical", options);
  const AsTensor how{.call = "keras_from_canonical", .dtype = spec.dtype};
  const std::vector<Array> matrices = as_arrays(weights, how), vectors = as_arrays(biases, how);
  return arrays_to_list(keras_from_canonical(spec, views(matrices), views(vectors)));
}

nb::tuple from_onnx(const nb::dict& options, nb::handle inputs) {
  const RnnSpec spec = as_network("canonical_from_onnx", options);
  const std::vector<Array> given =
      as_arrays(inputs, {.call = "canonical_from_onnx", .dtype = spec.dtype});
  const CanonicalParams canonical = canonical_from_onnx(spec, views(given));
  return nb::make_tuple(arrays_to_list(canonical.weights), arrays_to_list(canonical.biases));
}

nb::list to_onnx(const nb::dict& options, nb::handle weights, nb::handle biases) {
  const RnnSpec spec = as_network("onnx_from_canonical", options);
  const AsTensor how{.call = "onnx_from_canonical", .dtype = spec.dtype};
  const std::vector<Array> matrices = as_arrays(weights, how), vectors = as_arrays(biases, how);
  return arrays_to_list(onnx_from_canonical(spec, views(matrices), views(vectors)));
}

nb::list torch_names(const nb::dict& options) {
  nb::list names;
  for (const TorchParameter& parameter : torch_parameters(as_network("torch", options))) {
    names.append(parameter.name);
  }
  return names;
}

}  // namespace

void bind_networks(nb::module_& m) {
  m.def(
      "load_networks",
      [](const std::string& path, const std::optional<std::string>& rnn_mode,
         std::optional<bool> reset_after, const std::optional<std::string>& recurrent_activation,
         std::optional<double> forget_bias, const std::optional<nb::dict>& network) {
        const MappingHints hints =
            as_hints(rnn_mode, reset_after, recurrent_activation, forget_bias, network);
        return model_to_python(unlocked([&] { return load_networks(path, hints); }));
      },
      "path"_a, "rnn_mode"_a.none(), "reset_after"_a.none(), "recurrent_activation"_a.none(),
      "forget_bias"_a.none(), "network"_a.none(),
      nb::sig("def load_networks(path: str, rnn_mode: str | None, reset_after: bool | None, "
              "recurrent_activation: str | None, forget_bias: float | None, "
              "network: dict[str, typing.Any] | None) -> dict[str, typing.Any]"));
  m.def(
      "read_tensor",
      [](const std::string& path, const std::string& name) {
        return as_numpy(unlocked([&] { return ModelFile(path).read(name); }));
      },
      "path"_a, "name"_a, nb::sig("def read_tensor(path: str, name: str) -> typing.Any"));
  m.def("save_networks", &save, "path"_a, "networks"_a, "values"_a, "format"_a.none(),
        "file_kind"_a, "layers"_a, "outputs"_a,
        nb::sig("def save_networks(path: str, networks: list[dict[str, typing.Any]], "
                "values: dict[str, typing.Any], format: str | None, file_kind: int, "
                "layers: list[dict[str, typing.Any]], outputs: list[tuple[str, int]]) -> None"));
  m.def("check_values", &check_values, "path"_a, "names"_a, "format"_a.none(),
        nb::sig("def check_values(path: str, names: list[str], format: str | None) -> None"));
  m.def(
      "network_of_layer",
      [](const LayerRef& layer) { return all_options(layer.as<layers::CudnnRnn>("save").spec()); },
      "layer"_a, nb::sig("def network_of_layer(layer: LayerBase) -> dict[str, typing.Any]"));
  m.def("canonical_from_torch", &from_torch, "options"_a, "tensors"_any,
        nb::sig("def canonical_from_torch(options: dict[str, typing.Any], tensors: typing.Any) -> "
                "tuple[list[typing.Any], list[typing.Any]]"));
  m.def("torch_from_canonical", &to_torch, "options"_a, "weights"_any, "biases"_any,
        nb::sig("def torch_from_canonical(options: dict[str, typing.Any], weights: typing.Any, "
                "biases: typing.Any) -> dict[str, typing.Any]"));
  m.def("canonical_from_keras", &from_keras, "options"_a, "weights"_any,
        nb::sig("def canonical_from_keras(options: dict[str, typing.Any], weights: typing.Any) -> "
                "tuple[list[typing.Any], list[typing.Any]]"));
  m.def("keras_from_canonical", &to_keras, "options"_a, "weights"_any, "biases"_any,
        nb::sig("def keras_from_canonical(options: dict[str, typing.Any], weights: typing.Any, "
                "biases: typing.Any) -> list[typing.Any]"));
  m.def("canonical_from_onnx", &from_onnx, "options"_a, "inputs"_any,
        nb::sig("def canonical_from_onnx(options: dict[str, typing.Any], inputs: typing.Any) -> "
                "tuple[list[typing.Any], list[typing.Any]]"));
  m.def("onnx_from_canonical", &to_onnx, "options"_a, "weights"_any, "biases"_any,
        nb::sig("def onnx_from_canonical(options: dict[str, typing.Any], weights: typing.Any, "
                "biases: typing.Any) -> list[typing.Any]"));
  m.def("torch_names", &torch_names, "options"_a,
        nb::sig("def torch_names(options: dict[str, typing.Any]) -> list[str]"));
}

}  // namespace openrnn::python
