#include "base/message.h"
#include "mapping/support/biases.h"
#include "mapping/support/options.h"
#include "mapping/tensorflow/tensorflow.h"
#include "openrnn/saveables.h"

namespace openrnn::mapping {

namespace {

constexpr std::string_view kFormat = "a TensorFlow checkpoint";
constexpr double kDefaultForgetBias = 1.0;

// TensorFlow's LSTMCell has a forget_bias of 1, which its reader takes; all else has none.
MappedNetwork tf_network(const MappedNetwork& given) {
  constexpr std::string_view kHeld[] = {"num_proj",      "use_bias",    "single_bias",
                                        "use_peepholes", "reset_after", "forget_bias"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, kFormat, kHeld);
  if (network.initial_h || network.initial_c) {
    throw UnsupportedError(message("[save_networks] ", network_called(network.name),
                                   " has states to begin with, which ", kFormat, " cannot hold"));
  }
  if (network.spec.forget_bias != kDefaultForgetBias) network = without_forget_bias(network);
  const bool one_bias = network.spec.forget_bias != 0.0 || !network.spec.reset_after;
  return with_biases(network, one_bias ? 1 : 2);
}

std::string variable_name(const MappedNetwork& network, const TfTensor& tensor) {
  const RnnSpec& spec = network.spec;
  const std::string_view cell =
      spec.forget_bias != 0.0 ? std::string_view("lstm_cell") : tf_cell_name(spec);
  return message(network.name, network.name.empty() ? "" : "/",
                 tf_cell_scope(spec.direction, tensor.layer, tensor.direction), "/", cell, "/",
                 tensor.suffix);
}

void add_network(const MappedNetwork& network, std::vector<NamedTensor>* tensors) {
  const TfCanonicalFormat format(network.spec);
  std::vector<Array> values = format.from_opaque("save_networks", network.params.view());
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensors->push_back({variable_name(network, format.tensors()[i]), std::move(values[i])});
  }
  for (const auto& [slot, buffer] : network.slots) {
    std::vector<Array> parts = format.slots_from_opaque("save_networks", buffer.view());
    for (std::size_t i = 0; i < format.tensors().size(); ++i) {
      tensors->push_back(
          {variable_name(network, format.tensors()[i]) + "/" + slot, std::move(parts[i])});
    }
  }
}

template <class T>
Array scalar(DType dtype, T value) {
  Array array(dtype, {});
  array.as<T>()[0] = value;
  return array;
}

// Lists and None have no place.
void add_value(const NamedValue& value, std::vector<NamedTensor>* tensors) {
  if (const auto* const text = std::get_if<std::string>(&value.value)) {
    tensors->push_back({value.name, StringTensor{{}, {*text}}});
  } else if (const auto* const number = std::get_if<std::int64_t>(&value.value)) {
    tensors->push_back({value.name, scalar(DType::kInt64, *number)});
  } else if (const auto* const real = std::get_if<double>(&value.value)) {
    tensors->push_back({value.name, scalar(DType::kFloat64, *real)});
  } else if (const auto* const flag = std::get_if<bool>(&value.value)) {
    tensors->push_back({value.name, scalar(DType::kBool, *flag)});
  }
}

}  // namespace

void save_tensorflow(const std::string& path, const MappedModel& model) {
  std::vector<NamedTensor> tensors;
  for (const MappedNetwork& network : model.networks) add_network(tf_network(network), &tensors);
  for (const NamedValue& value : model.values) add_value(value, &tensors);
  constexpr std::string_view kIndex = ".index";
  write_tensor_bundle(path.ends_with(kIndex) ? path.substr(0, path.size() - kIndex.size()) : path,
                      tensors);
}

}  // namespace openrnn::mapping
