// The variables of a layer.
#include "base/message.h"
#include "graph/scope_stack.h"
#include "openrnn/graph_layer.h"

namespace openrnn {

Variable Layer::add_weight(const std::string& name, const Shape& shape,
                           const VariableOptions& options) {
  open_scope("");
  std::optional<graph::ReopenedScope> scope;
  if (VariableScope::current_name() != scope_name_) {
    scope.emplace(scope_name_, VariableScope::current_reuse());
  }
  VariableOptions own = options;
  own.trainable = options.trainable && trainable;
  if (!own.device) own.device = &device();
  weights_.push_back(get_variable(name, shape, own));
  if (options.regularizer) {
    losses_.push_back({.compute = [variable = weights_.back(), regularizer = options.regularizer] {
      return regularizer(variable.read());
    }});
  }
  return weights_.back();
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> all = trainable_weights();
  for (Variable& variable : non_trainable_weights()) all.push_back(std::move(variable));
  return all;
}

std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> result;
  for (const Variable& variable : all_weights()) {
    if (trainable && variable.trainable()) result.push_back(variable);
  }
  return result;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  std::vector<Variable> result;
  for (const Variable& variable : all_weights()) {
    if (!trainable || !variable.trainable()) result.push_back(variable);
  }
  return result;
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
