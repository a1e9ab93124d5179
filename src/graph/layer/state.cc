// The state that copies take over, and their scopes.
#include <algorithm>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

// 'dense_1' has its number from being the second 'dense'.
std::string without_number(const std::string& scope) {
  const std::size_t end = scope.find_last_not_of("0123456789");
  const bool numbered = end != std::string::npos && end + 1 < scope.size() && scope[end] == '_';
  return numbered && end > 0 ? scope.substr(0, end) : scope;
}

bool has_saveable(const Graph& graph, const Variable& variable) {
  const auto& all = graph.saveables();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& one) { return one->variable().same_as(variable); });
}

}  // namespace

LayerState Layer::state() const {
  LayerState state{.name = name_,
                   .named = named_,
                   .trainable = trainable(),
                   .stateful = stateful,
                   .built = built_};
  if (!graph_) return state;
  state.scope = scope_name_;
  state.saveable_scope = saveable_scope_;
  state.input_shape = built_for_;
  state.weights = weights_;
  for (const Variable& weight : weights_) {
    const bool inside = weight.name().starts_with(scope_name_ + "/");
    state.weight_names.push_back(inside ? weight.name().substr(scope_name_.size() + 1)
                                        : weight.name());
  }
  for (const Loss& loss : losses_) {
    if (!loss.regularizer) continue;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (loss.variable.same_as(weights_[i])) state.regularizers.emplace_back(i, loss.regularizer);
    }
  }
  return state;
}

// Free of variables except this layer's and its parts', and their optimizer slots.
std::string Layer::free_scope(const LayerState& state) const {
  std::vector<Variable> own = all_weights();
  own.insert(own.end(), state.weights.begin(), state.weights.end());
  const auto is_own = [&](const std::string& name) {
    return std::any_of(own.begin(), own.end(), [&](const Variable& variable) {
      return name == variable.name() || name.starts_with(variable.name() + "/");
    });
  };
  auto& counts = graph_->state().scope_counts;
  const std::vector<Variable> all = graph_->variables();
  const auto is_taken = [&](const std::string& scope) {
    const auto count = counts.find(scope);
    if (count != counts.end() && count->second > 0) return true;
    return std::any_of(all.begin(), all.end(), [&](const Variable& variable) {
      return variable.name().starts_with(scope + "/") && !is_own(variable.name());
    });
  };
  const std::string base = state.named ? state.scope : without_number(state.scope);
  std::string scope = state.scope;
  for (int n = 1; is_taken(scope); ++n) scope = message(base, "_", n);
  ++counts[scope];
  return scope;
}

void Layer::take_over(const LayerState& state) {
  name_ = state.name;
  named_ = state.named;
  *trainable_ = state.trainable;
  stateful = state.stateful;
  if (state.scope.empty()) return;
  graph_ = &Graph::current();
  graph_id_ = graph_->id();
  taken_scope_ = state.scope;
  scope_name_ = free_scope(state);
  const bool moved = scope_name_ != state.scope;
  if (moved && !named_) name_ = graph::last_part(scope_name_);
  saveable_scope_ = moved ? scope_name_ : state.saveable_scope;
  for (std::size_t i = 0; i < state.weights.size(); ++i) {
    state.weights[i].rename(scope_name_ + "/" + state.weight_names[i]);
  }
  taken_weights_ = state.weights;
  if (state.built && builds_again()) {
    const graph::ReopenedScope scope(scope_name_, false);
    do_build(state.input_shape);
  }
  for (const Variable& weight : std::exchange(taken_weights_, {})) {
    weights_.push_back(weight);
    weight.belong_to(trainable_);
  }
  if (!builds_again()) {
    for (const auto& [place, regularizer] : state.regularizers) {
      losses_.push_back({.regularizer = regularizer, .variable = weights_[place]});
      graph_->add_regularizer(weights_[place], regularizer);
    }
  }
  built_ = class_built_ = ran_in_scope_ = state.built;
  built_for_ = state.input_shape;
  if (!moved) return;
  const auto follow = [this, from = state.scope, to = scope_name_] {
    for (const Layer* layer : all_layers()) {
      if (layer != this) layer->handle_->layer->follow_scope(from, to);
    }
    return true;
  };
  follow();
  when_changed(follow);  // parts that it gets after this
}

// A layer inside another one's scope stays inside it, under the name that it had there.
void Layer::follow_scope(const std::string& from, const std::string& to) {
  if (taken_scope_.starts_with(from + "/")) move_scope(to + taken_scope_.substr(from.size()));
}

void Layer::move_scope(const std::string& to) {
  const auto stays = [&](const Variable& weight) {
    return !weight.name().starts_with(scope_name_ + "/") || has_saveable(*graph_, weight) ||
           graph_->has_variable(to + weight.name().substr(scope_name_.size()));
  };
  if (std::any_of(weights_.begin(), weights_.end(), stays)) return;
  for (const Variable& weight : weights_) {
    weight.rename(to + weight.name().substr(scope_name_.size()));
  }
  --graph_->state().scope_counts[scope_name_];
  ++graph_->state().scope_counts[to];
  scope_name_ = to;
  if (!named_) name_ = graph::last_part(to);
}

}  // namespace openrnn
