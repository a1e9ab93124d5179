#include "mapping/support/biases.h"
#include "mapping/support/options.h"
#include "mapping/torch/torch.h"

namespace openrnn::mapping {

namespace {

// The network as PyTorch's modules have it: two biases or none, and nothing beside them.
MappedNetwork torch_form(const MappedNetwork& given, std::string_view format) {
  constexpr std::string_view kHeld[] = {"num_proj", "use_bias", "single_bias", "forget_bias"};
  MappedNetwork network = given;
  network.spec = plainest(network.spec);
  require_held("save_networks", network.name, network.spec, format, kHeld);
  network = without_forget_bias(network);
  return network.spec.use_bias ? with_biases(network, 2) : network;
}

}  // namespace

TorchTensors torch_tensors_of(const MappedModel& model, std::string_view format) {
  TorchTensors out;
  for (const MappedNetwork& network : model.networks) {
    out.networks.push_back(torch_form(network, format));
  }
  for (const MappedNetwork& network : out.networks) {
    const std::string prefix = network.name.empty() ? "" : network.name + ".";
    const auto* const first = static_cast<const std::byte*>(network.params.data());
    const DType dtype = network.spec.dtype;
    for (const TorchParameter& parameter : torch_parameters(network.spec)) {
      const auto at = static_cast<std::size_t>(parameter.offset) * dtype_size(dtype);
      out.views.push_back({prefix + parameter.name, {first + at, dtype, parameter.shape}});
    }
  }
  return out;
}

}  // namespace openrnn::mapping
