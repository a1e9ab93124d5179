#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "layers/graph/values.h"
#include "openrnn/layers_graph.h"
#include "openrnn/ops_part.h"

namespace openrnn::layers {

namespace {

// Of the first weights, which all others fit.
DType dtype_of(const LayerGraph::Made& made) {
  for (const auto& [name, layer] : made) {
    if (!layer->own_weights().empty()) return layer->dtype();
  }
  return DType::kFloat32;
}

template <class T>
bool is_a(const Layer* layer) {
  return dynamic_cast<const T*>(layer) != nullptr;
}

bool has_layer(const std::string& kind) {
  return kind == "embedding" || kind == "dense" || kind == "recurrent" || kind == "dropout";
}

bool fits(const MappedLayer& one, const Layer* layer) {
  if (one.kind == "embedding") return is_a<Embedding>(layer);
  if (one.kind == "dense") return is_a<Dense>(layer);
  if (one.kind == "recurrent") return is_a<CudnnRnn>(layer);
  return is_a<Dropout>(layer);
}

std::vector<LayerValue> inputs_of(const std::vector<MappedLayer>& layers, const FindSpec& find) {
  std::vector<LayerValue> values;
  for (const MappedLayer& one : layers) {
    if (one.kind == "input") values.push_back(layer_outputs(one, {}, find).at(0));
  }
  return values;
}

}  // namespace

LayerGraph::LayerGraph(std::vector<MappedLayer> layers, std::vector<LayerOutput> outputs, Made made,
                       std::string name)
    : Layer(std::move(name), "layer_graph", dtype_of(made)),
      layers_(std::move(layers)),
      outputs_(std::move(outputs)),
      made_(std::move(made)) {
  check_made();
  for (MappedLayer& one : layers_) one.weights.clear();
  values_ = check_layers(layers_, outputs_, find_spec());
  input_values_ = inputs_of(layers_, find_spec());
  // In the order of the model, not of the names.
  for (const MappedLayer& one : layers_) {
    if (has_layer(one.kind)) track(one.name, made_.at(one.name));
  }
}

void LayerGraph::check_made() const {
  for (const MappedLayer& one : layers_) {
    if (!has_layer(one.kind)) continue;
    const auto found = made_.find(one.name);
    if (found == made_.end() || !fits(one, found->second.get())) {
      throw ArgumentError(message("[LayerGraph] the layer '", excerpt(one.name), "' (", one.kind,
                                  ") has no layer of its class, expected one"));
    }
    if (one.kind != "dropout" && !found->second->built()) {
      throw ArgumentError(message("[LayerGraph] the layer '", excerpt(one.name),
                                  "' is not built, expected one with weights"));
    }
  }
}

FindSpec LayerGraph::find_spec() const {
  std::map<std::string, const RnnSpec*> specs;
  for (const MappedLayer& one : layers_) {
    if (one.kind != "recurrent") continue;
    specs.emplace(layer_option_as<std::string>(one, "network"),
                  &dynamic_cast<const CudnnRnn&>(*made_.at(one.name)).spec());
  }
  return [specs = std::move(specs)](const std::string& name) {
    const auto found = specs.find(name);
    return found == specs.end() ? nullptr : found->second;
  };
}

std::vector<LayerValue> LayerGraph::outputs() const {
  std::vector<LayerValue> values;
  for (const LayerOutput& output : outputs_) {
    values.push_back(values_.at(output.layer)[static_cast<std::size_t>(output.index)]);
  }
  return values;
}

std::shared_ptr<Layer> LayerGraph::layer(const std::string& name) const {
  const auto found = made_.find(name);
  if (found != made_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, layer] : made_) names.push_back("'" + each + "'");
  throw ArgumentError(message("[LayerGraph] no layer '", excerpt(name), "', expected one of ",
                              listed_excerpts(names)));
}

void LayerGraph::check_values(const std::vector<Tensor>& values) const {
  if (values.size() != input_values_.size()) {
    throw ArgumentError(
        message("[", name(), "] ", values.size(), " inputs, expected ", input_values_.size()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const LayerValue& expected = input_values_[i];
    if (values[i].dtype() == expected.dtype && shapes_fit(values[i].shape(), expected.shape)) {
      continue;
    }
    throw ArgumentError(message("[", name(), "] inputs[", i, "] is ", dtype_name(values[i].dtype()),
                                " ", to_string(values[i].shape()), ", expected ",
                                dtype_name(expected.dtype), " ", to_string(expected.shape)));
  }
}

std::vector<Tensor> LayerGraph::operator()(const std::vector<Tensor>& values, bool training) {
  check_values(values);
  ensure_built(values[0].shape());
  std::vector<TensorSpec> specs;
  for (const LayerValue& value : outputs()) {
    Shape shape = value.shape;
    const std::int64_t batch = values[0].shape()[0];
    if (shape[0] < 0) shape[0] = batch;
    specs.push_back({value.dtype, std::move(shape)});
  }
  return run_call(values, specs, {training});
}

// The states are those of the part before, whose rows are other ones.
void LayerGraph::check_whole_batch() const {
  const ops::PartScope* const scope = ops::PartScope::current();
  if (!scope) return;
  throw UnsupportedError(message("[", name(), "] ", scope->part().rows, " rows of a batch of ",
                                 scope->part().whole_batch, " with a stateful layer, expected the ",
                                 "whole batch (micro_batches 1), or a layer that is not stateful"));
}

std::vector<Tensor> LayerGraph::compute_call(const Attributes& call,
                                             const std::vector<Tensor>& inputs,
                                             const Replay& replay) {
  const bool training = replay.training.value_or(std::get<bool>(call.at(0)));
  std::map<std::string_view, std::vector<GraphValue>> values;
  std::map<std::string, std::vector<Tensor>> states;
  const auto value_of = [&](const LayerOutput& from) -> const GraphValue& {
    return values.at(from.layer)[static_cast<std::size_t>(from.index)];
  };
  std::size_t next_input = 0;
  for (const MappedLayer& one : layers_) {
    if (one.kind == "input") {
      values[one.name] = {{inputs[next_input++]}};
      continue;
    }
    GraphStep step{.layer = one, .inputs = {}, .training = training};
    for (const LayerOutput& from : one.inputs) step.inputs.push_back(value_of(from));
    const auto made = made_.find(one.name);
    if (made != made_.end()) step.made = made->second.get();
    if (one.kind == "recurrent" && layer_option_as<bool>(one, "stateful")) {
      check_whole_batch();
      states[one.name] = states_.contains(one.name) ? states_[one.name] : std::vector<Tensor>();
      step.state = &states[one.name];
    }
    values[one.name] = compute_layer(step);
  }
  // Only now: a call that failed has changed nothing.
  states_ = std::move(states);
  std::vector<Tensor> results;
  for (const LayerOutput& output : outputs_) results.push_back(value_of(output).x);
  return results;
}

std::vector<Array> LayerGraph::predict(const std::vector<Tensor>& values) {
  std::vector<Array> results;
  for (const Tensor& output : (*this)(values, false)) results.push_back(output.to_host());
  return results;
}

std::shared_ptr<Layer> LayerGraph::copy() const {
  Made made;
  for (const auto& [name, layer] : made_) made[name] = layer->copy();
  auto other = std::make_shared<LayerGraph>(layers_, outputs_, std::move(made));
  other->copy_layer(*this);
  other->states_ = states_;
  return other;
}

}  // namespace openrnn::layers
