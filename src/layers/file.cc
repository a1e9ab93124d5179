#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/layers_file.h"

namespace openrnn {

std::vector<LoadedLayer> load(const std::string& path, const MappingHints& hints) {
  std::vector<LoadedLayer> loaded;
  for (MappedNetwork& network : load_networks(path, hints).networks) {
    LoadedLayer one{network.name, layers::make_cudnn_rnn({.network = network.spec})};
    one.layer->build({-1, -1, network.spec.input_size});
    one.layer->kernel().assign(network.params.view());
    if (network.initial_h) one.initial_state.push_back(std::move(*network.initial_h));
    if (network.initial_c) one.initial_state.push_back(std::move(*network.initial_c));
    loaded.push_back(std::move(one));
  }
  return loaded;
}

void save(const std::string& path, std::span<const LoadedLayer> networks, ModelFormat format) {
  MappedModel model;
  for (const LoadedLayer& one : networks) {
    if (!one.layer || !one.layer->built()) {
      throw StateError(message("[save] the layer of '", excerpt(one.name),
                               "' is not built, expected one with weights"));
    }
    MappedNetwork network{
        .name = one.name, .spec = one.layer->spec(), .params = one.layer->kernel().to_host()};
    network.spec.compute.device = nullptr;
    if (!one.initial_state.empty()) network.initial_h = one.initial_state[0];
    if (one.initial_state.size() > 1) network.initial_c = one.initial_state[1];
    model.networks.push_back(std::move(network));
  }
  save_networks(path, model, format);
}

}  // namespace openrnn
