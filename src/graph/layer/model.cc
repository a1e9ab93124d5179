#include <algorithm>
#include <unordered_set>

#include "base/message.h"
#include "graph/graph_state.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

void check_symbolic(const char* what, const std::vector<Tensor>& tensors) {
  if (tensors.empty()) {
    throw ArgumentError(message("[Model] no ", what, ", expected at least one symbolic tensor"));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_symbolic()) continue;
    throw ArgumentError(message("[Model] ", what, "[", i,
                                "] is not symbolic, expected an Input or what descends from one"));
  }
}

bool has_all_inputs(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets) {
  const auto calls = calls_between(inputs, targets);
  return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return bool(call->run); });
}

}  // namespace

Model::Model(std::vector<Tensor> inputs, std::vector<Tensor> outputs, std::string name)
    : Layer(std::move(name), "model", DType::kFloat32),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {
  check_symbolic("inputs", inputs_);
  check_symbolic("outputs", outputs_);
  calls_ = calls_between(inputs_, outputs_);
  for (const auto& call : calls_) {
    if (call->run) continue;
    throw ArgumentError(message("[Model] an output depends on the Input '", call->op, "' of shape ",
                                to_string(call->outputs[0].shape),
                                ", expected it among the inputs"));
  }
  build({});
}

std::vector<Layer*> Model::layers() const {
  std::vector<Layer*> layers;
  for (const auto& call : calls_) {
    Layer* const layer = call->layer ? call->layer->layer : nullptr;
    if (layer && std::find(layers.begin(), layers.end(), layer) == layers.end()) {
      layers.push_back(layer);
    }
  }
  return layers;
}

std::vector<Layer*> Model::sublayers() const {
  std::vector<Layer*> all = layers();
  for (Layer* layer : Layer::sublayers()) all.push_back(layer);
  return all;
}

void Model::gather(Walk& walk) const {
  for (const auto& call : calls_) {
    if (!call->variable.empty()) walk.add(call->variable);
    if (call->layer && call->layer->layer) gather_of(*call->layer->layer, walk);
  }
  Layer::gather(walk);
}

std::vector<Tensor> Model::symbolic_losses(bool by_calls) const {
  std::vector<Tensor> found;
  for (const Layer* layer : layers()) {
    for (const Loss& loss : layer->losses_) {
      if (!by_calls && loss.added == Added::kRecorded) continue;
      if (loss.value.is_symbolic()) found.push_back(loss.value);
    }
  }
  // Usually all of them belong to this model, which one walk finds.
  if (!has_all_inputs(inputs_, found)) {
    std::erase_if(found, [this](const Tensor& loss) { return !has_all_inputs(inputs_, {loss}); });
  }
  return found;
}

Layer::NodeList Model::recorded_calls() const {
  std::vector<Tensor> targets = outputs_;
  for (Tensor& loss : symbolic_losses(true)) targets.push_back(std::move(loss));
  return calls_between({}, targets);
}

std::vector<Model::SymbolicLoss> Model::recorded_losses() const {
  const std::vector<Tensor> wanted = symbolic_losses(true);
  std::vector<SymbolicLoss> found;
  for (Layer* layer : layers()) {
    for (const Loss& loss : layer->losses_) {
      const auto same = [&](const Tensor& other) { return same_tensor(loss.value, other); };
      if (std::none_of(wanted.begin(), wanted.end(), same)) continue;
      found.push_back({layer->weak_from_this().lock(), loss.value, loss.inputs,
                       loss.added == Added::kRecorded});
    }
  }
  return found;
}

void Model::add_losses(const std::vector<SymbolicLoss>& losses) {
  for (const SymbolicLoss& loss : losses) {
    const auto same = [&](const Loss& known) { return same_tensor(known.value, loss.value); };
    const std::vector<Loss>& known = loss.layer->losses_;
    if (std::any_of(known.begin(), known.end(), same)) continue;
    const DuringCall during(*loss.layer, loss.by_call ? Added::kRecorded : Added::kOutside);
    loss.layer->add_loss(loss.value, loss.inputs);
  }
}

std::vector<Tensor> Model::operator()(const std::vector<Tensor>& values,
                                      std::optional<bool> training) {
  if (values.size() != inputs_.size()) {
    throw ArgumentError(
        message("[", name(), "] ", values.size(), " inputs, expected ", inputs_.size()));
  }
  ensure_built(values[0].shape());
  begin_call(values);
  for (Layer* layer : layers()) layer->forget(Added::kReplayed);
  SymbolicValues computed(Replay{training});
  for (std::size_t i = 0; i < values.size(); ++i) computed.set(inputs_[i], values[i]);
  std::vector<Tensor> results;
  for (const Tensor& output : outputs_) results.push_back(computed.get(output));
  std::vector<Tensor> losses;
  for (const Tensor& loss : symbolic_losses(false)) losses.push_back(computed.get(loss));
  call_losses_ = std::move(losses);
  called_ = true;
  end_call(values, results);
  return results;
}

std::vector<Array> Model::predict(const std::vector<Tensor>& values) {
  std::vector<Array> results;
  for (const Tensor& output : (*this)(values, false)) results.push_back(output.to_host());
  return results;
}

bool Model::has_call_losses() const { return !call_losses_.empty() || Layer::has_call_losses(); }

std::vector<Tensor> Model::losses() const {
  std::vector<Tensor> all;
  for (const Layer* layer : all_layers()) {
    for (Tensor& loss : layer->own_losses(layer == this, called_)) all.push_back(std::move(loss));
  }
  for (const Tensor& loss : called_ ? call_losses_ : symbolic_losses(true)) all.push_back(loss);
  return all;
}

std::shared_ptr<Layer> Model::copy() const {
  // The copy has the name of this one: the name taken by its constructor is released.
  const graph::Rollback names(Graph::current());
  auto made = std::make_shared<Model>(inputs_, outputs_);
  made->copy_layer(*this);
  made->call_losses_ = call_losses_;
  made->called_ = called_;
  return made;
}

}  // namespace openrnn
