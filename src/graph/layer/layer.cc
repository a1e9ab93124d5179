#include <algorithm>
#include <span>
#include <utility>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "openrnn/graph_layer.h"

namespace openrnn {
namespace {

struct SetWhile {
  explicit SetWhile(bool& value) : flag(value) { flag = true; }
  ~SetWhile() { flag = false; }
  SetWhile(const SetWhile&) = delete;
  SetWhile& operator=(const SetWhile&) = delete;
  bool& flag;
};

}  // namespace

Layer::Layer(std::string name, std::string default_name, DType dtype, const Device* device)
    : name_(name.empty() ? std::move(default_name) : name),
      named_(!name.empty()),
      dtype_(dtype),
      device_(device ? device : &default_device()),
      handle_(std::make_shared<LayerHandle>(LayerHandle{this})) {}

Layer::~Layer() { handle_->layer = nullptr; }

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
  if (!graph::is_alive(graph_id_)) {
    throw StateError(message("[graph] the graph of the layer '", name_,
                             "' is gone, expected it to outlive the layer"));
  }
  return *graph_;
}

void Layer::open_scope(const std::string& scope) {
  if (graph_) return;
  const std::string outer = VariableScope::current_name();
  if (!scope.empty()) {
    scope_name_ = graph::join_scope(outer, scope);
  } else if (reuse_) {
    scope_name_ = graph::join_scope(outer, name_);
    ++Graph::current().state().scope_counts[scope_name_];
  } else {
    scope_name_ = graph::join_scope(outer, Graph::current().unique_name(outer, name_));
  }
  if (!named_) name_ = graph::last_part(scope_name_);
  graph_ = &Graph::current();
  graph_id_ = graph_->id();
}

void Layer::build_in(const Shape& input_shape, const std::string& saveable_scope) {
  saveable_scope_ = saveable_scope;
  const graph::ReopenedScope scope(scope_name_, reuse_ || VariableScope::current_reuse());
  if (own_build_) {
    class_built_ = false;
    const SetWhile building(building_);
    own_build_(input_shape);
  } else {
    do_build(input_shape);
  }
  built_ = true;
  built_for_ = input_shape;
  run_waiting();
}

void Layer::build_or_undo(const Shape& input_shape, const std::string& scope, bool explicit_build) {
  if (built_) return;
  graph::Rollback rollback(Graph::current());
  const std::string name_before = name_;
  const bool opened_before = graph_ != nullptr;
  const std::size_t weights_before = weights_.size(), losses_before = losses_.size(),
                    updates_before = updates_.size();
  const std::string around = VariableScope::current_name();
  try {
    open_scope(scope);
    build_in(input_shape, explicit_build ? around : scope_name_);
  } catch (...) {
    weights_.resize(weights_before);
    losses_.resize(losses_before);
    updates_.resize(updates_before);
    built_ = false;
    input_spec_.reset();
    if (!opened_before) {
      name_ = name_before;
      scope_name_.clear();
      graph_ = nullptr;
    }
    throw;
  }
  rollback.keep();
}

void Layer::build(const Shape& input_shape) {
  if (!building_) return build_or_undo(input_shape, "", true);
  if (std::exchange(class_built_, true)) return;
  do_build(input_shape);
}

void Layer::override_build(std::function<void(const Shape&)> build) {
  own_build_ = std::move(build);
  // A model's constructor built it before the override was known.
  if (!class_built_) built_ = false;
}

void Layer::require_class_build() const {
  if (!own_build_ || class_built_) return;
  throw StateError(message("[", name_, "] the build() of its class has not run, expected build() ",
                           "of the subclass to call it"));
}

void Layer::run_and_adopt(const std::function<void()>& call) {
  const graph::Keeper made(Graph::current());
  call();
  if (made.variables().empty()) return;
  const std::vector<Variable> known = all_weights();
  for (const Variable& variable : made.variables()) {
    const auto same = [&](const Variable& other) { return other.same_as(variable); };
    if (std::none_of(known.begin(), known.end(), same)) weights_.push_back(variable);
  }
}

void Layer::run_in_scope(const std::function<void()>& call) {
  const bool reuse = ran_in_scope_ || reuse_ || VariableScope::current_reuse();
  const graph::ReopenedScope scope(scope_name_, reuse);
  if (ran_in_scope_) return call();
  graph::Rollback rollback(Graph::current());
  run_and_adopt(call);
  rollback.keep();
  ran_in_scope_ = true;
}

void Layer::ensure_built(const Shape& input_shape, const std::string& scope) {
  build_or_undo(input_shape, scope, false);
}

Shape Layer::compute_output_shape(const Shape& input_shape) const {
  throw UnsupportedError(message("[compute_output_shape] the layer '", name_,
                                 "' does not say what it makes of ", to_string(input_shape)));
}

Tensor Layer::compute_mask(const Tensor&, const Tensor& mask) const {
  if (mask.empty()) return {};
  throw TypeError(message("[compute_mask] the layer '", name_,
                          "' was given a mask, expected none: it does not support masking"));
}

std::shared_ptr<Layer> Layer::copy() const {
  throw UnsupportedError(message("[copy] the layer '", name_, "' is of a class without copies"));
}

Tensor Layer::placed(const Tensor& tensor) const {
  if (tensor.empty() || tensor.is_symbolic() || tensor.placed()) return tensor;
  return is_floating(tensor.dtype()) ? tensor.to(device()) : tensor;
}

void Layer::copy_layer(const Layer& other) {
  *trainable_ = other.trainable();
  stateful = other.stateful;
  name_ = other.name_;
  scope_name_ = other.scope_name_;
  saveable_scope_ = other.saveable_scope_;
  named_ = other.named_;
  dtype_ = other.dtype_;
  device_ = other.device_;
  built_ = other.built_;
  reuse_ = other.reuse_;
  built_for_ = other.built_for_;
  published_losses_ = nullptr;
  graph_ = other.graph_;
  graph_id_ = other.graph_id_;
  input_spec_ = other.input_spec_;
  class_built_ = other.built_;
  ran_in_scope_ = other.ran_in_scope_;
  weights_ = other.weights_;
  parts_ = other.parts_;
  activity_regularizer_ = other.activity_regularizer_;
  losses_ = other.losses_;
  updates_ = other.updates_;
  inbound_nodes_ = other.inbound_nodes_;
  outbound_nodes_ = other.outbound_nodes_;
}

}  // namespace openrnn
