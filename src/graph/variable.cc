#include <mutex>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/leaf_id.h"
#include "graph/scope_stack.h"

namespace openrnn {

struct Variable::State {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool trainable = true;
  const Device* device = nullptr;
  std::uint64_t leaf_id = 0;
  std::function<Tensor(const Tensor&)> constraint;
  std::mutex mutex;  // guards the two below
  DeviceArray value;
  std::uint64_t version = 1;
};

namespace {

Variable::State& checked(const std::shared_ptr<Variable::State>& state) {
  if (!state) throw StateError("[Variable] the variable is empty, expected one that was made");
  return *state;
}

void check_assigned(const Variable::State& state, DType dtype, const Shape& shape) {
  if (dtype == state.dtype && shape == state.shape) return;
  throw ArgumentError(message("[assign] the value is ", dtype_name(dtype), " of shape ",
                              to_string(shape), ", expected ", dtype_name(state.dtype),
                              " of shape ", to_string(state.shape), " as '", state.name, "'"));
}

}  // namespace

Variable::Variable(const std::string& name, Array initial_value, bool trainable,
                   const Device* device) {
  graph::check_name("Variable", name);
  Graph::State& graph = Graph::current().state();
  auto state = std::make_shared<State>();
  state->name = graph::join_scope(VariableScope::current_name(), name);
  if (graph.variable_places.contains(state->name)) {
    throw ArgumentError(
        message("[Variable] '", state->name, "' exists already, expected a new name"));
  }
  state->dtype = initial_value.dtype();
  state->shape = initial_value.shape();
  state->trainable = trainable;
  state->leaf_id = graph::next_id();
  state->device = device ? device : &default_device();
  state->value = DeviceArray::from_host(*state->device, initial_value.view());
  state_ = std::move(state);
  graph.variable_places.emplace(state_->name, graph.variables.size());
  graph.variables.push_back(*this);
}

const std::string& Variable::name() const { return checked(state_).name; }
DType Variable::dtype() const { return checked(state_).dtype; }
const Shape& Variable::shape() const { return checked(state_).shape; }
bool Variable::trainable() const { return checked(state_).trainable; }
const Device& Variable::device() const { return *checked(state_).device; }
std::uint64_t Variable::leaf_id() const { return checked(state_).leaf_id; }

const std::function<Tensor(const Tensor&)>& Variable::constraint() const {
  return checked(state_).constraint;
}

void Variable::set_constraint(std::function<Tensor(const Tensor&)> constraint) const {
  checked(state_).constraint = std::move(constraint);
}

std::uint64_t Variable::version() const {
  State& state = checked(state_);
  const std::lock_guard lock(state.mutex);
  return state.version;
}

Tensor Variable::read() const {
  State& state = checked(state_);
  const std::lock_guard lock(state.mutex);
  Tensor tensor(state.value);
  tensor.leaf_id_ = state.leaf_id;
  tensor.version_ = state.version;
  tensor.wants_gradient_ = state.trainable;
  return tensor;
}

void Variable::assign(const ConstArrayView& value) const {
  check_assigned(checked(state_), value.dtype, value.shape);
  assign(DeviceArray::from_host(device(), value));
}

void Variable::assign(DeviceArray value) const {
  State& state = checked(state_);
  check_assigned(state, value.dtype(), value.shape());
  value = on_device(std::move(value), *state.device);
  // Its owner may change it, and must not see what an optimizer writes.
  if (value.borrowed()) value.make_unique_owner();
  const std::lock_guard lock(state.mutex);
  // The old value dies after the lock: what that runs may wait for others who want the lock.
  std::swap(state.value, value);
  ++state.version;
}

void Variable::update(const std::function<void(void* elements)>& writer) const {
  State& state = checked(state_);
  const std::lock_guard lock(state.mutex);
  state.value.make_unique_owner();
  // Before the writer runs: one that throws may have written.
  ++state.version;
  writer(state.value.mutable_data());
}

}  // namespace openrnn
