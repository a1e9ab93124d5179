// Losses and updates of a layer.
#include <algorithm>

#include "base/message.h"
#include "graph/symbolic/share.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

// Whether something that was added for `inputs` depends on one of `sources`.
bool reachable(const std::vector<Tensor>& inputs, const std::vector<Tensor>& sources) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Tensor& input) { return depends_on(input, sources); });
}

using Losses = std::function<std::vector<Tensor>()>;

// The graph refers to it, the layer owns it: a loss that refers to the layer keeps no layer alive.
std::shared_ptr<const Losses> published(Losses losses) {
  auto shared = std::make_shared<const Losses>(std::move(losses));
  Graph::current().add_regularization_losses(shared);
  return shared;
}

}  // namespace

void Layer::set_activity_regularizer(Regularizer regularizer) {
  activity_regularizer_ = std::move(regularizer);
}

void Layer::add_loss(std::function<Tensor()> loss) {
  if (!loss) throw ArgumentError("[add_loss] loss is empty, expected a function or a tensor");
  std::shared_ptr<const Losses> shared;
  if (adds_ == Added::kOutside) {
    shared = published([loss] { return std::vector{loss()}; });
  } else {
    publish_call_losses();
  }
  losses_.push_back({.compute = std::move(loss), .added = adds_, .published = std::move(shared)});
}

void Layer::add_loss(const Tensor& loss, const std::vector<Tensor>& inputs) {
  if (loss.empty())
    throw ArgumentError("[add_loss] loss is empty, expected a function or a tensor");
  const bool of_values = !inputs.empty() && !loss.is_symbolic();
  const Added added = adds_ == Added::kOutside && of_values ? Added::kCall : adds_;
  // The layer owns the loss: if the loss owned the layer, neither would ever be freed.
  const Tensor kept = graph::without_owner(loss);
  losses_.push_back({.value = kept, .inputs = graph::without_owners(inputs), .added = added});
  if (added == Added::kOutside) {
    losses_.back().published = published([kept] { return std::vector{kept}; });
  } else {
    publish_call_losses();
  }
}

// One entry a layer: the losses of a call are other ones at each call.
void Layer::publish_call_losses() {
  if (published_losses_) return;
  published_losses_ = published([handle = std::shared_ptr<const LayerHandle>(handle_)] {
    return handle->layer ? handle->layer->call_losses() : std::vector<Tensor>{};
  });
}

std::vector<Tensor> Layer::call_losses() const {
  std::vector<Tensor> values;
  for (const Loss& loss : losses_) {
    if (loss.added != Added::kOutside && counts(loss.added, replayed_))
      values.push_back(loss.now());
  }
  return values;
}

std::vector<Tensor> Layer::own_losses(bool symbolic, bool replayed) const {
  std::vector<Tensor> values;
  for (const Loss& loss : losses_) {
    if (!counts(loss.added, replayed)) continue;
    if (symbolic || !loss.value.is_symbolic()) values.push_back(loss.now());
  }
  return values;
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> values = own_losses(true, replayed_);
  for (const Layer* layer : all_layers()) {
    if (layer == this) continue;
    for (Tensor& loss : layer->own_losses(true, layer->replayed_))
      values.push_back(std::move(loss));
  }
  return values;
}

bool Layer::has_call_losses() const {
  const std::vector<const Layer*> layers = all_layers();
  return std::any_of(layers.begin(), layers.end(), [](const Layer* layer) {
    return std::any_of(layer->losses_.begin(), layer->losses_.end(), [&](const Loss& loss) {
      return loss.added != Added::kOutside && counts(loss.added, layer->replayed_);
    });
  });
}

std::vector<Tensor> Layer::get_losses_for(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> values;
  for (const Layer* layer : all_layers()) {
    for (const Loss& loss : layer->losses_) {
      if (loss.added == Added::kReplayed) continue;  // its inputs are values
      const bool wanted = inputs.empty() ? loss.inputs.empty() : reachable(loss.inputs, inputs);
      if (wanted) values.push_back(loss.now());
    }
  }
  return values;
}

void Layer::add_update(UpdateFunction update, const std::vector<Tensor>& inputs) {
  if (!update) throw ArgumentError("[add_update] update is empty, expected a function");
  updates_.push_back({std::make_shared<const UpdateFunction>(std::move(update)),
                      graph::without_owners(inputs), adds_});
}

std::vector<UpdateFunction> Layer::updates() const {
  std::vector<UpdateFunction> functions;
  if (!trainable() && !stateful) return functions;
  for (const Layer* layer : all_layers()) {
    if (!layer->trainable() && !layer->stateful) continue;
    for (const Update& update : layer->updates_) {
      if (counts(update.added, layer->replayed_)) functions.push_back(*update.function);
    }
  }
  return functions;
}

std::vector<UpdateFunction> Layer::get_updates_for(const std::vector<Tensor>& inputs) const {
  std::vector<UpdateFunction> functions;
  if (!trainable() && !stateful) return functions;
  for (const Layer* layer : all_layers()) {
    if (!layer->trainable() && !layer->stateful) continue;
    for (const Update& update : layer->updates_) {
      if (update.added == Added::kReplayed) continue;
      const bool wanted = inputs.empty() ? update.inputs.empty() : reachable(update.inputs, inputs);
      if (wanted) functions.push_back(*update.function);
    }
  }
  return functions;
}

void Layer::forget(Added added) {
  std::erase_if(losses_, [&](const Loss& loss) { return loss.added == added; });
  std::erase_if(updates_, [&](const Update& update) { return update.added == added; });
  if (added == Added::kReplayed) replayed_ = false;
}

void Layer::begin_call(const std::vector<Tensor>& inputs) {
  if (part_of_call()) return;
  for (const Tensor& input : inputs) {
    if (input.is_symbolic() && graph_ && input.symbol()->call->graph_id != graph_id_) {
      throw ArgumentError(message("[", name_, "] an input belongs to another graph, expected that ",
                                  "of the layer"));
    }
  }
  run_waiting();  // for parts added to a list since
  forget(Added::kCall);
  forget(Added::kReplayed);
  if (!trainable() && !stateful) return;
  for (const Update& update : updates_) Graph::current().add_update(update.function, false);
}

void Layer::end_call(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  if (!activity_regularizer_ || part_of_call()) return;
  for (const Tensor& output : outputs) {
    add_loss(activity_regularizer_(graph::without_owner(output)), inputs);
  }
}

}  // namespace openrnn
