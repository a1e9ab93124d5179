// What all optimizers share: slots, float32 master copies, loss scaling.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "openrnn/runtime.h"
#include "openrnn/train_optimizer.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr float kFirstLossScale = 32768.0F;    // 2^15
constexpr float kLastLossScale = 16777216.0F;  // 2^24: beyond it scaled losses overflow float16
constexpr float kLeastLossScale = 1.0F / 65536.0F;
constexpr std::int64_t kGoodStepsToDouble = 2000;

Array filled(const Shape& shape, DType dtype, double value) {
  Array array(dtype, shape);
  if (dtype == DType::kFloat64) {
    for (double& x : array.as<double>()) x = value;
  } else {
    for (float& x : array.as<float>()) x = static_cast<float>(value);
  }
  return array;
}

/// `name`, or name_1, name_2, ... where a variable has it already: TensorFlow numbers the slots of
/// one variable so, whichever optimizer they belong to.
std::string free_name(const std::string& name) {
  std::string free = name;
  for (int i = 1; Graph::current().has_variable(free); ++i) free = name + "_" + std::to_string(i);
  return free;
}

template <class T>
T scalar(const Variable& variable) {
  return variable.to_host().as<T>()[0];
}

template <class T>
void set_scalar(const Variable& variable, T value) {
  variable.assign(Array::of<T>({}, std::span<const T>(&value, 1)).view());
}

DeviceArray converted(const DeviceArray& from, DType dtype) {
  DeviceArray to(from.device(), dtype, from.shape());
  from.device().convert(from.size(), from.dtype(), from.data(), dtype, to.mutable_data());
  return to;
}

bool same_bytes(const Array& a, const Array& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

Optimizer::Optimizer(std::string name, double learning_rate, std::vector<SlotRule> slots)
    : name_(std::move(name)), learning_rate_(0.0), slot_rules_(std::move(slots)) {
  set_learning_rate(learning_rate);
}

void Optimizer::set_learning_rate(double learning_rate) {
  if (!std::isfinite(learning_rate) || learning_rate < 0.0) {
    throw ArgumentError(message(name_ + "Optimizer", "learning_rate ", learning_rate,
                                ", expected a finite number of at least 0"));
  }
  learning_rate_ = learning_rate;
}

void Optimizer::prepare(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (kept_.count(variable.leaf_id()) == 0) make_kept(variable);
  }
}

void Optimizer::make_kept(const Variable& variable) {
  if (!is_floating(variable.dtype())) {
    throw ArgumentError(message(name_ + "Optimizer", "variable '", variable.name(), "' of ",
                                dtype_name(variable.dtype()), ", expected a floating dtype"));
  }
  if (kept_.empty()) make_scalars();
  Kept kept;
  kept.variable = variable;
  const bool half = variable.dtype() == DType::kFloat16;
  const DType dtype = half ? DType::kFloat32 : variable.dtype();
  if (half) {
    if (loss_scale_.empty()) make_loss_scale();
    kept.master = Variable(free_name(variable.name() + "/master"),
                           cast(variable.to_host().view(), dtype), false, &variable.device());
    kept.written_version = variable.version();
  }
  for (const SlotRule& rule : slot_rules_) {
    kept.slots.emplace_back(free_name(variable.name() + "/" + name_),
                            filled(variable.shape(), dtype, rule.initial_value), false,
                            &variable.device());
  }
  kept_.emplace(variable.leaf_id(), std::move(kept));
}

void Optimizer::make_loss_scale() {
  // Read by the host at every step.
  const Device* const cpu = &device("cpu");
  loss_scale_ =
      Variable(free_name("loss_scale"), filled({}, DType::kFloat32, kFirstLossScale), false, cpu);
  good_steps_ = Variable(free_name("loss_scale_good_steps"), Array(DType::kInt64, {}), false, cpu);
}

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  const auto found = kept_.find(variable.leaf_id());
  if (found == kept_.end()) {
    throw ArgumentError(message(name_ + "Optimizer", "slots of '", variable.name(),
                                "', expected a variable that was prepared or updated"));
  }
  return found->second.slots;
}

double Optimizer::loss_scale() const {
  return loss_scale_.empty() ? 1.0 : scalar<float>(loss_scale_);
}

std::vector<DeviceArray> Optimizer::compute_gradients(const GradientTape& tape, const Tensor& loss,
                                                      const std::vector<Variable>& variables) {
  prepare(variables);
  if (loss_scale_.empty()) return tape.gradient(loss, variables);
  // The scale goes in as the gradient of the loss, so that nothing else need be scaled.
  const double scale = loss_scale();
  Array start(loss.dtype(), loss.shape());
  if (loss.dtype() == DType::kFloat16) {
    for (Half& x : start.as<Half>()) x = to_half(static_cast<float>(scale));
  } else {
    start = filled(loss.shape(), loss.dtype(), scale);
  }
  const Device& device = loss.value().device();
  std::vector<DeviceArray> gradients =
      tape.gradient(loss, variables, DeviceArray::from_host(device, start.view()));
  for (DeviceArray& gradient : gradients) {
    if (gradient.empty()) continue;
    if (gradient.dtype() == DType::kFloat16) gradient = converted(gradient, DType::kFloat32);
    gradient.make_unique_owner();
    gradient.device().scale(gradient.dtype(), gradient.size(), 1.0 / scale, gradient.data(),
                            gradient.mutable_data());
  }
  return gradients;
}

void Optimizer::update_one(Kept& kept, const DeviceArray& given) {
  OptimizerStep step = rule();
  const Device& device = kept.variable.device();
  const DeviceArray gradient = on_device(given, device);
  const bool half = !kept.master.empty();
  if (half && kept.variable.version() != kept.written_version) {
    // Somebody else wrote the variable: the master follows, unless it says the same already.
    const Array now = kept.variable.to_host();
    if (!same_bytes(cast(kept.master.to_host().view(), DType::kFloat16), now)) {
      kept.master.assign(cast(now.view(), DType::kFloat32).view());
    }
  }
  const Variable& target = half ? kept.master : kept.variable;
  step.dtype = target.dtype();
  step.size = shape_size(target.shape());
  step.gradient = gradient.data();
  const std::function<void(std::size_t)> with_slots = [&](std::size_t slot) {
    if (slot < kept.slots.size()) {
      kept.slots[slot].update([&](void* elements) {
        step.slots[slot] = elements;
        with_slots(slot + 1);
      });
    } else {
      target.update([&](void* elements) {
        step.variable = elements;
        device.optimizer_step(step);
      });
    }
  };
  with_slots(0);
  if (half) {
    kept.variable.assign(converted(kept.master.read().value(), DType::kFloat16));
    kept.written_version = kept.variable.version();
  }
}

void Optimizer::apply_gradients(const std::vector<DeviceArray>& gradients,
                                const std::vector<Variable>& variables,
                                const Variable& global_step) {
  if (gradients.size() != variables.size()) {
    throw ArgumentError(message(name_ + "Optimizer", gradients.size(), " gradients, expected ",
                                variables.size(), ", one for each variable"));
  }
  if (!variables.empty() && std::all_of(gradients.begin(), gradients.end(),
                                        [](const DeviceArray& each) { return each.empty(); })) {
    throw ArgumentError(message(name_ + "Optimizer", "no gradients for any of ", variables.size(),
                                " variables, of which the first is '", variables[0].name(),
                                "', expected a loss that depends on one"));
  }
  prepare(variables);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    if (gradients[i].empty()) continue;
    const DType dtype = variable.dtype() == DType::kFloat16 ? DType::kFloat32 : variable.dtype();
    if (gradients[i].shape() != variable.shape() || gradients[i].dtype() != dtype) {
      throw ArgumentError(
          message(name_ + "Optimizer", "a gradient of ", dtype_name(gradients[i].dtype()), " ",
                  openrnn::to_string(gradients[i].shape()), " for '", variable.name(),
                  "', expected ", dtype_name(dtype), " ", openrnn::to_string(variable.shape())));
    }
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].empty()) update_one(kept_.at(variables[i].leaf_id()), gradients[i]);
  }
  advance_scalars();
  if (!global_step.empty()) set_scalar(global_step, scalar<std::int64_t>(global_step) + 1);
  // Last, as these are the caller's and may throw: the step itself is whole by then. A float16
  // variable's master follows at the next step, as after any other write.
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const auto& constraint = variables[i].constraint();
    if (constraint && !gradients[i].empty()) {
      variables[i].assign(constraint(variables[i].read()).value());
    }
  }
}

bool Optimizer::adjust_loss_scale(bool finite) {
  if (loss_scale_.empty()) return finite;
  const auto scale = scalar<float>(loss_scale_);
  if (!finite) {
    if (scale <= kLeastLossScale) return false;
    set_scalar(loss_scale_, scale * 0.5F);
    set_scalar<std::int64_t>(good_steps_, 0);
    return true;
  }
  const std::int64_t good = scalar<std::int64_t>(good_steps_) + 1;
  const bool raise = good >= kGoodStepsToDouble && scale < kLastLossScale;
  if (raise) set_scalar(loss_scale_, scale * 2.0F);
  set_scalar<std::int64_t>(good_steps_, good >= kGoodStepsToDouble ? 0 : good);
  return true;
}

StepResult Optimizer::minimize(const GradientTape& tape, const Tensor& loss,
                               const std::vector<Variable>& variables, const Variable& global_step,
                               double clip_norm) {
  return clip_and_apply(compute_gradients(tape, loss, variables), variables, global_step,
                        clip_norm);
}

StepResult Optimizer::clip_and_apply(std::vector<DeviceArray> gradients,
                                     const std::vector<Variable>& variables,
                                     const Variable& global_step, double clip_norm) {
  StepResult result;
  result.gradient_norm = global_norm(gradients);
  const bool finite = std::isfinite(result.gradient_norm);
  if (!adjust_loss_scale(finite)) {
    throw ArgumentError(message(name_ + "Optimizer", "gradients with a global norm of ",
                                result.gradient_norm,
                                ", expected finite ones (a lower learning rate may help)"));
  }
  result.applied = finite;
  if (finite) {
    if (clip_norm > 0.0) clip_by_global_norm(gradients, clip_norm);
    apply_gradients(gradients, variables, global_step);
  } else if (!global_step.empty()) {
    set_scalar(global_step, scalar<std::int64_t>(global_step) + 1);
  }
  return result;
}

Variable get_or_create_global_step() {
  Graph& graph = Graph::current();
  if (graph.has_variable("global_step")) return graph.variable("global_step");
  return Variable("global_step", Array(DType::kInt64, {}), false, &device("cpu"));
}

}  // namespace openrnn::train
