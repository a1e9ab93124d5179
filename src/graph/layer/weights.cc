// The variables of a layer.
#include <algorithm>

#include "base/message.h"
#include "graph/scope_stack.h"
#include "openrnn/graph_layer.h"

namespace openrnn {

Variable Layer::add_weight(const std::string& name, const Shape& shape,
                           const VariableOptions& options) {
  open_scope("");
  const std::string full = graph::join_scope(scope_name_, name);
  const bool known = std::any_of(weights_.begin(), weights_.end(),
                                 [&](const Variable& own) { return own.name() == full; });
  const graph::ReopenedScope scope(scope_name_, known || reuse_ || VariableScope::current_reuse());
  VariableOptions own = options;
  if (!own.device) own.device = &device();
  if (known) return get_variable(name, shape, own);
  weights_.push_back(make_weight(name, shape, own));
  weights_.back().belong_to(trainable_);
  if (options.regularizer) {
    losses_.push_back({.regularizer = options.regularizer, .variable = weights_.back()});
  }
  return weights_.back();
}

Variable Layer::make_weight(const std::string& name, const Shape& shape, VariableOptions options) {
  const auto found =
      std::find_if(taken_weights_.begin(), taken_weights_.end(),
                   [&](const Variable& taken) { return taken.name() == scope_name_ + "/" + name; });
  if (found == taken_weights_.end()) return get_variable(name, shape, options);
  const Variable taken = *found;
  if (taken.shape() != shape || taken.dtype() != options.dtype) {
    throw ArgumentError(message("[take_over] '", taken.name(), "' is ", dtype_name(taken.dtype()),
                                " of shape ", to_string(taken.shape()), ", expected ",
                                dtype_name(options.dtype), " of shape ", to_string(shape)));
  }
  taken_weights_.erase(found);
  taken.set_constraint(options.constraint);
  if (options.regularizer) Graph::current().add_regularizer(taken, options.regularizer);
  return taken;
}

void Layer::Walk::add(const Variable& variable) {
  if (trainable_only && !variable.trainable()) return;
  if (variables.insert(variable.leaf_id()).second) found.push_back(variable);
}

void Layer::gather_of(const Layer& layer, Walk& walk) {
  if (walk.trainable_only && !layer.trainable()) return;
  if (walk.layers.insert(&layer).second) layer.gather(walk);
}

void Layer::gather(Walk& walk) const {
  for (const Variable& variable : weights_) walk.add(variable);
  const std::function<void(const std::vector<LayerPart>&)> add_parts = [&](const auto& parts) {
    for (const LayerPart& part : parts) {
      if (!part.variable.empty()) walk.add(part.variable);
      add_parts(part.parts);
    }
  };
  add_parts(parts());
  for (const Layer* layer : sublayers()) gather_of(*layer, walk);
}

std::vector<Variable> Layer::all_weights() const {
  Walk walk;
  gather_of(*this, walk);
  return walk.found;
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> all = trainable_weights();
  for (Variable& variable : non_trainable_weights()) all.push_back(std::move(variable));
  return all;
}

std::vector<Variable> Layer::trainable_weights() const {
  Walk walk{.trainable_only = true};
  gather_of(*this, walk);
  return walk.found;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  Walk trained{.trainable_only = true};
  gather_of(*this, trained);
  std::vector<Variable> others = all_weights();
  std::erase_if(others, [&](const Variable& variable) {
    return trained.variables.contains(variable.leaf_id());
  });
  return others;
}

std::int64_t Layer::count_params() const {
  if (!built_) {
    throw ArgumentError(message("[count_params] the layer '", name_,
                                "' is not built, expected a build or a call before"));
  }
  std::int64_t count = 0;
  for (const Variable& variable : all_weights()) count += shape_size(variable.shape());
  return count;
}

std::vector<Array> Layer::get_weights() const {
  std::vector<Array> values;
  for (const Variable& variable : weights()) values.push_back(variable.to_host());
  return values;
}

void Layer::set_weights(const std::vector<Array>& values) {
  const std::vector<Variable> variables = weights();
  if (values.size() != variables.size()) {
    throw ArgumentError(message("[set_weights] ", values.size(), " arrays, expected ",
                                variables.size(), " for the layer '", name_, "'"));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].shape() != variables[i].shape() || values[i].dtype() != variables[i].dtype()) {
      throw ArgumentError(message(
          "[set_weights] values[", i, "] is ", dtype_name(values[i].dtype()), " of shape ",
          to_string(values[i].shape()), ", expected ", dtype_name(variables[i].dtype()),
          " of shape ", to_string(variables[i].shape()), " as '", variables[i].name(), "'"));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) variables[i].assign(values[i].view());
}

}  // namespace openrnn
