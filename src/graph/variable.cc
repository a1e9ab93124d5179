#include <mutex>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "graph/tape/leaf_id.h"

namespace openrnn {

struct Variable::State {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool trainable = true;
  const Device* device = nullptr;
  std::uint64_t leaf_id = 0;
  std::function<Tensor(const Tensor&)> constraint;
  std::vector<std::shared_ptr<const void>> regularizers;  // what the graph's collection refers to
  std::mutex mutex;                                       // guards those below
  DeviceArray value;
  std::uint64_t version = 1;
  std::shared_ptr<const std::atomic<bool>> layer_trainable;
  std::shared_ptr<OpenChange> change;  // null: none is open
  SettledBy settled_by = SettledBy::kToHost;

  /// The open change that such a use settles; null: none.
  std::shared_ptr<OpenChange> open_for(SettledBy use) {
    const std::lock_guard lock(mutex);
    return change && use <= settled_by ? change : nullptr;
  }
  // Not under the lock: settling may write this variable on the host.
  void settle(SettledBy use) {
    if (const auto open = open_for(use)) open->settle();
  }
  bool trained() const noexcept { return trainable && (!layer_trainable || *layer_trainable); }
};

namespace {

Variable::State& checked(const std::shared_ptr<Variable::State>& state) {
  if (!state) throw StateError("[Variable] the variable is empty, expected one that was made");
  return *state;
}

void check_assigned(const char* call, const Variable& variable, DType dtype, const Shape& shape) {
  if (dtype == variable.dtype() && shape == variable.shape()) return;
  throw ArgumentError(message("[", call, "] the value is ", dtype_name(dtype), " of shape ",
                              to_string(shape), ", expected ", dtype_name(variable.dtype()),
                              " of shape ", to_string(variable.shape()), " as '", variable.name(),
                              "'"));
}

}  // namespace

Variable::Variable(const std::string& name, Array initial_value, bool trainable,
                   const Device* device) {
  graph::check_name("Variable", name);
  Graph::State& graph = Graph::current().state();
  auto state = std::make_shared<State>();
  state->name = graph::join_scope(VariableScope::current_name(), name);
  if (!graph.find(state->name).empty()) {
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
  graph.add(*this);
}

Variable graph::WeakVariable::lock() const {
  Variable variable;
  variable.state_ = state_.lock();
  return variable;
}

void Graph::add_regularizer(const Variable& variable,
                            std::function<Tensor(const Tensor&)> regularizer) {
  const auto losses = std::make_shared<const State::Losses>(
      [weak = graph::WeakVariable(variable), regularizer = std::move(regularizer)] {
        const Variable now = weak.lock();
        return now.empty() ? std::vector<Tensor>{} : std::vector{regularizer(now.read())};
      });
  checked(variable.state_).regularizers.push_back(losses);
  add_regularization_losses(losses);
}

Variable Graph::State::find(const std::string& name) const {
  const auto found = variables_by_name.find(name);
  return found == variables_by_name.end() ? Variable() : found->second.lock();
}

void Graph::State::add(const Variable& variable) {
  tidy();
  variables_by_name[variable.name()] = graph::WeakVariable(variable);
  variables.emplace_back(variable);
  for (std::vector<Variable>* const keeper : keepers) keeper->push_back(variable);
}

// Whenever the list has doubled: variables come and go in constant time and memory.
void Graph::State::tidy() {
  constexpr std::size_t kFew = 64;
  if (variables.size() < 2 * variables_tidied + kFew) return;
  std::erase_if(variables, [](const graph::WeakVariable& each) { return each.gone(); });
  std::erase_if(variables_by_name, [](const auto& pair) { return pair.second.gone(); });
  variables_tidied = variables.size();
}

const std::string& Variable::name() const { return checked(state_).name; }
DType Variable::dtype() const { return checked(state_).dtype; }
const Shape& Variable::shape() const { return checked(state_).shape; }

bool Variable::trainable() const {
  State& state = checked(state_);
  const std::lock_guard lock(state.mutex);
  return state.trained();
}

bool Variable::made_trainable() const { return checked(state_).trainable; }

void Variable::rename(const std::string& full_name) const {
  State& state = checked(state_);
  if (state.name == full_name) return;
  graph::check_name("rename", full_name);
  Graph::State& graph = Graph::current().state();
  if (!graph.find(state.name).same_as(*this) || !graph.find(full_name).empty()) {
    throw ArgumentError(message("[rename] '", state.name, "' to '", full_name,
                                "', expected a variable of the current graph and a new name"));
  }
  graph.variables_by_name.erase(state.name);
  graph.variables_by_name[full_name] = graph::WeakVariable(*this);
  state.name = full_name;
}

void Variable::belong_to(const std::shared_ptr<const std::atomic<bool>>& layer_trainable) const {
  State& state = checked(state_);
  const std::lock_guard lock(state.mutex);
  if (!state.layer_trainable) state.layer_trainable = layer_trainable;
}

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
  state.settle(SettledBy::kRead);
  const std::lock_guard lock(state.mutex);
  Tensor tensor(state.value);
  tensor.leaf_id_ = state.leaf_id;
  tensor.version_ = state.version;
  tensor.wants_gradient_ = state.trained();
  return tensor;
}

Array Variable::to_host() const {
  if (const auto open = checked(state_).open_for(SettledBy::kToHost)) open->report();
  return read().to_host();
}

void Variable::await(std::shared_ptr<OpenChange> change, SettledBy by) const {
  State& state = checked(state_);
  // A replaced one is destroyed after the lock is released: it may hold this variable.
  const std::lock_guard lock(state.mutex);
  std::swap(state.change, change);
  state.settled_by = by;
}

void Variable::forget(const OpenChange& change) const {
  State& state = checked(state_);
  std::shared_ptr<OpenChange> gone;
  const std::lock_guard lock(state.mutex);
  if (state.change.get() == &change) std::swap(state.change, gone);
}

void Variable::assign(const ConstArrayView& value) const {
  check_assigned("assign", *this, value.dtype, value.shape);
  assign(DeviceArray::from_host(device(), value));
}

void Variable::assign(DeviceArray value) const {
  State& state = checked(state_);
  check_assigned("assign", *this, value.dtype(), value.shape());
  state.settle(SettledBy::kWrite);
  value = on_device(std::move(value), *state.device);
  // Borrowed memory: its owner may change it, and must not see what an optimizer writes.
  if (value.borrowed()) value.make_unique_owner();
  const std::lock_guard lock(state.mutex);
  // The old value is destroyed after the lock is released: its destructor may wait for another
  // thread that wants the lock.
  std::swap(state.value, value);
  ++state.version;
}

namespace {

// Sums of integers wrap, as those of unsigned ones do.
template <class T>
void combine(BinaryOp op, std::int64_t size, const void* x, void* y) {
  using Bits = std::make_unsigned_t<T>;
  const auto* from = static_cast<const Bits*>(x);
  auto* to = static_cast<Bits*>(y);
  for (std::int64_t i = 0; i < size; ++i) {
    to[i] = static_cast<Bits>(op == BinaryOp::kAdd ? to[i] + from[i] : to[i] - from[i]);
  }
}

void combine_integers(BinaryOp op, const ConstArrayView& x, void* y) {
  const std::int64_t size = shape_size(x.shape);
  switch (x.dtype) {
    case DType::kInt64:
      return combine<std::int64_t>(op, size, x.data, y);
    case DType::kInt32:
      return combine<std::int32_t>(op, size, x.data, y);
    default:
      return combine<std::uint8_t>(op, size, x.data, y);
  }
}

// y op= x, in the memory of x's device.
void combine_in_place(BinaryOp op, const DeviceArray& x, void* y) {
  const Device& device = x.device();
  if (is_floating(x.dtype())) {
    return device.binary(op, x.dtype(), x.size(), y, x.data(), y);
  }
  Array sum(x.dtype(), x.shape());
  device.download(sum.data(), y, x.size_bytes());
  combine_integers(op, x.to_host().view(), sum.data());
  device.upload(y, sum.data(), x.size_bytes());
}

void change(const Variable& variable, BinaryOp op, DeviceArray value) {
  const char* const call = op == BinaryOp::kAdd ? "assign_add" : "assign_sub";
  check_assigned(call, variable, value.dtype(), value.shape());
  if (value.dtype() == DType::kBool) {
    throw ArgumentError(message("[", call, "] '", variable.name(), "' is bool, expected numbers"));
  }
  value = on_device(std::move(value), variable.device());
  variable.update([&](void* elements) { combine_in_place(op, value, elements); });
}

}  // namespace

void Variable::assign_add(const ConstArrayView& value) const {
  check_assigned("assign_add", *this, value.dtype, value.shape);
  assign_add(DeviceArray::from_host(device(), value));
}

void Variable::assign_add(DeviceArray value) const {
  change(*this, BinaryOp::kAdd, std::move(value));
}

void Variable::assign_sub(const ConstArrayView& value) const {
  check_assigned("assign_sub", *this, value.dtype, value.shape);
  assign_sub(DeviceArray::from_host(device(), value));
}

void Variable::assign_sub(DeviceArray value) const {
  change(*this, BinaryOp::kSubtract, std::move(value));
}

void Variable::update(const std::function<void(void* elements)>& writer) const {
  State& state = checked(state_);
  state.settle(SettledBy::kWrite);
  const std::lock_guard lock(state.mutex);
  state.value.make_unique_owner();
  // Before the writer runs: one that throws may have written.
  ++state.version;
  writer(state.value.mutable_data());
}

}  // namespace openrnn
