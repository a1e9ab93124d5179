#include "base/message.h"
#include "graph/scope_stack.h"
#include "openrnn/graph.h"

namespace openrnn {
namespace {

// The last word of a scope's name.
std::string last_part(const std::string& scope) { return scope.substr(scope.rfind('/') + 1); }

}  // namespace

Layer::Layer(std::string name, std::string default_name, DType dtype)
    : name_(name.empty() ? std::move(default_name) : name), named_(!name.empty()), dtype_(dtype) {}

const std::string& Layer::scope_name() const {
  if (!graph_) {
    throw ArgumentError(message("[scope_name] the layer '", name_,
                                "' has no scope yet, expected a build or a call before"));
  }
  return scope_name_;
}

Graph& Layer::graph() const {
  if (!graph_) {
    throw ArgumentError(message("[graph] the layer '", name_,
                                "' has no graph yet, expected a build or a call before"));
  }
  return *graph_;
}

void Layer::open_scope() {
  if (graph_) return;
  const std::string outer = VariableScope::current_name();
  scope_name_ = graph::join_scope(outer, Graph::current().unique_name(outer, name_));
  if (!named_) name_ = last_part(scope_name_);
  graph_ = &Graph::current();
}

void Layer::build_in(const Shape& input_shape, const std::string& saveable_scope) {
  saveable_scope_ = saveable_scope;
  const graph::ReopenedScope scope(scope_name_, VariableScope::current_reuse());
  weights_.clear();
  do_build(input_shape);
  built_ = true;
}

void Layer::build(const Shape& input_shape) {
  if (built_) return;
  open_scope();
  build_in(input_shape, VariableScope::current_name());
}

void Layer::ensure_built(const Shape& input_shape) {
  if (built_) return;
  open_scope();
  build_in(input_shape, scope_name_);
}

Variable Layer::add_weight(const std::string& name, const Shape& shape,
                           const VariableOptions& options) {
  weights_.push_back(get_variable(name, shape, options));
  if (options.regularizer) {
    losses_.push_back([variable = weights_.back(), regularizer = options.regularizer] {
      return regularizer(variable.read());
    });
  }
  return weights_.back();
}

void Layer::add_loss(std::function<Tensor()> loss) {
  Graph::current().add_regularization_loss(loss);
  losses_.push_back(std::move(loss));
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> values;
  for (const auto& loss : losses_) values.push_back(loss());
  return values;
}

void Layer::add_update(std::function<void()> update) {
  if (!update) throw ArgumentError("[add_update] update is empty, expected a function");
  updates_.push_back(std::move(update));
}

std::vector<std::function<void()>> Layer::updates() const {
  return trainable ? updates_ : std::vector<std::function<void()>>{};
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> all = trainable_weights();
  for (Variable& variable : non_trainable_weights()) all.push_back(std::move(variable));
  return all;
}

std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> result;
  for (const Variable& variable : weights_) {
    if (trainable && variable.trainable()) result.push_back(variable);
  }
  return result;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  std::vector<Variable> result;
  for (const Variable& variable : weights_) {
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
  for (const Variable& variable : weights_) count += shape_size(variable.shape());
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
