// Graphs of model files: their layers with the weights of the file, and back.
#include "base/excerpt.h"
#include "base/message.h"
#include "layers/graph/values.h"
#include "openrnn/layers_graph.h"

namespace openrnn::layers {

namespace {

std::shared_ptr<CudnnRnn> new_rnn(CudnnRnnOptions options) {
  switch (options.network.mode) {
    case RnnMode::kLstm:
      return std::make_shared<LSTM>(std::move(options));
    case RnnMode::kGru:
      return std::make_shared<GRU>(std::move(options));
    default:
      return std::make_shared<RNN>(std::move(options));
  }
}

class LayerMaker {
 public:
  LayerMaker(const MappedModel& model, const Device* device) : device_(device) {
    for (const MappedNetwork& network : model.networks) networks_[network.name] = &network;
  }

  std::shared_ptr<Layer> make(const MappedLayer& layer, const LayerValue& input) const {
    std::shared_ptr<Layer> made;
    if (layer.kind == "embedding") made = embedding(layer);
    if (layer.kind == "dense") made = dense(layer, input);
    if (layer.kind == "recurrent") made = recurrent(layer);
    if (layer.kind == "dropout") {
      return std::make_shared<Dropout>(
          DropoutOptions{.rate = layer_option_as<double>(layer, "rate")});
    }
    if (!made) return nullptr;
    made->build(input.shape);
    assign(layer, *made);
    made->set_trainable(layer_option_as<bool>(layer, "trainable"));
    return made;
  }

 private:
  std::shared_ptr<Layer> embedding(const MappedLayer& layer) const {
    return std::make_shared<Embedding>(
        EmbeddingOptions{.vocabulary = layer_option_as<std::int64_t>(layer, "vocabulary"),
                         .dim = layer_option_as<std::int64_t>(layer, "dim"),
                         .dtype = parse_dtype(layer_option_as<std::string>(layer, "dtype")),
                         .device = device_});
  }

  std::shared_ptr<Layer> dense(const MappedLayer& layer, const LayerValue& input) const {
    const std::optional<Activation> own =
        own_activation(parse_layer_function(layer_option_as<std::string>(layer, "activation")));
    return std::make_shared<Dense>(
        DenseOptions{.units = layer_option_as<std::int64_t>(layer, "units"),
                     .activation = own.value_or(Activation::kLinear),
                     .use_bias = layer_option_as<bool>(layer, "use_bias"),
                     .dtype = input.dtype,
                     .device = device_});
  }

  std::shared_ptr<Layer> recurrent(const MappedLayer& layer) const {
    CudnnRnnOptions options{.network = network_of(layer).spec};
    if (device_) options.network.compute.device = device_;
    return new_rnn(std::move(options));
  }

  const MappedNetwork& network_of(const MappedLayer& layer) const {
    return *networks_.at(layer_option_as<std::string>(layer, "network"));
  }

  void assign(const MappedLayer& layer, Layer& made) const {
    if (layer.kind == "recurrent") {
      dynamic_cast<CudnnRnn&>(made).kernel().assign(network_of(layer).params.view());
      return;
    }
    const std::vector<Variable>& variables = made.own_weights();
    if (layer.weights.size() != variables.size()) {
      throw ArgumentError(message("[LayerGraph] the layer '", excerpt(layer.name), "' has ",
                                  layer.weights.size(), " weights, expected ", variables.size()));
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      variables[i].assign(layer.weights[i].values.view());
    }
  }

  const Device* device_;
  std::map<std::string, const MappedNetwork*> networks_;
};

}  // namespace

std::shared_ptr<LayerGraph> LayerGraph::of(const MappedModel& model, const Device* device) {
  if (model.layers.empty()) {
    throw UnsupportedError(
        message("[LayerGraph] the file has no whole model that is computed here, only ",
                model.networks.size(), " recurrent networks", model.notes.empty() ? "" : ": ",
                model.notes.empty() ? "" : model.notes.back()));
  }
  const auto values = check_layers(model.layers, model.outputs, find_spec_in(model));
  const LayerMaker maker(model, device);
  Made made;
  for (const MappedLayer& layer : model.layers) {
    if (layer.inputs.empty()) continue;
    const LayerOutput& from = layer.inputs[0];
    const LayerValue& input = values.at(from.layer)[static_cast<std::size_t>(from.index)];
    if (std::shared_ptr<Layer> one = maker.make(layer, input)) made[layer.name] = std::move(one);
  }
  std::vector<MappedLayer> described;
  for (const MappedLayer& layer : model.layers) {
    described.push_back({layer.name, layer.kind, layer.inputs, layer.options});
  }
  return std::make_shared<LayerGraph>(std::move(described), model.outputs, std::move(made));
}

MappedModel LayerGraph::to_model() const {
  MappedModel model;
  model.outputs = outputs_;
  for (const MappedLayer& one : layers_) {
    model.layers.push_back(one);
    const auto found = made_.find(one.name);
    if (found == made_.end()) continue;
    if (const auto* rnn = dynamic_cast<const CudnnRnn*>(found->second.get())) {
      MappedNetwork network{.name = layer_option_as<std::string>(one, "network"),
                            .spec = rnn->spec(),
                            .params = rnn->kernel().to_host()};
      network.spec.compute.device = nullptr;
      model.networks.push_back(std::move(network));
      continue;
    }
    for (const Variable& variable : found->second->own_weights()) {
      const std::size_t at = variable.name().rfind('/') + 1;
      model.layers.back().weights.push_back({variable.name().substr(at), variable.to_host()});
    }
  }
  return model;
}

}  // namespace openrnn::layers

namespace openrnn {

std::shared_ptr<layers::LayerGraph> load_model(const std::string& path, const MappingHints& hints) {
  return layers::LayerGraph::of(load_networks(path, hints));
}

void save_model(const std::string& path, const layers::LayerGraph& model, ModelFormat format) {
  save_networks(path, model.to_model(), format);
}

}  // namespace openrnn
