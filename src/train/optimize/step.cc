// One step: at once where the host computes, else decided by the device itself.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "train/message.h"
#include "train/optimize/pending_step.h"
#include "train/optimize/scalars.h"

namespace openrnn::train {

/// What a step changes, by what.
struct Optimizer::Step {
  std::vector<DeviceArray> gradients;
  const std::vector<Variable>& variables;
  const Variable& global_step;
  double clip_norm = 0.0;
  Tensor loss = {};
  const StepDecision* decision = nullptr;  // null: it is taken
};

namespace {

bool same_bytes(const Array& a, const Array& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// The GPU that has all gradients, their variables and the loss; null: there is none.
const Device* only_gpu(const std::vector<DeviceArray>& gradients,
                       const std::vector<Variable>& variables, const Tensor& loss) {
  const Device* found = loss.empty() ? nullptr : &loss.device();
  for (std::size_t i = 0; i < std::min(gradients.size(), variables.size()); ++i) {
    if (gradients[i].empty()) continue;
    const Device* const device = &gradients[i].device();
    if ((found && found != device) || &variables[i].device() != device) return nullptr;
    found = device;
  }
  return found && found->engine() ? found : nullptr;
}

/// The projected value takes the place of the variable's, if the step is taken.
void assign_if(const StepDecision* decision, const Variable& variable, DeviceArray value) {
  const bool fits = value.dtype() == variable.dtype() && value.shape() == variable.shape();
  if (!decision || !fits) return variable.assign(std::move(value));
  value = on_device(std::move(value), variable.device());
  // Borrowed memory may be unaligned.
  if (value.borrowed()) value.make_unique_owner();
  variable.update([&](void* elements) {
    value.device().copy_if(decision, value.size_bytes(), value.data(), elements);
  });
}

}  // namespace

void Optimizer::update_one(Kept& kept, const DeviceArray& given, const StepDecision* decision) {
  OptimizerStep step = rule();
  const Device& device = kept.variable.device();
  const DeviceArray gradient = on_device(given, device);
  const bool copied = !kept.master.empty();
  if (copied && kept.variable.version() != kept.written_version) {
    // The variable was written elsewhere: the master copies it, unless it agrees already.
    const Array now = kept.variable.read().to_host();
    if (!same_bytes(cast(kept.master.read().to_host().view(), now.dtype()), now)) {
      kept.master.assign(cast(now.view(), DType::kFloat32).view());
    }
  }
  const Variable& target = copied ? kept.master : kept.variable;
  step.dtype = target.dtype();
  step.size = shape_size(target.shape());
  step.gradient = gradient.data();
  step.decision = decision;
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
  if (copied) {
    // The same as before where the step is not taken. In place, as other variables.
    const DeviceArray master = kept.master.read().value();
    kept.variable.update([&](void* elements) {
      const DType stored = kept.variable.dtype();
      device.convert(master.size(), master.dtype(), master.data(), stored, elements);
    });
    kept.written_version = kept.variable.version();
  }
}

void Optimizer::check_gradients(const Step& step) {
  const std::vector<DeviceArray>& gradients = step.gradients;
  const std::vector<Variable>& variables = step.variables;
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
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    if (gradients[i].empty()) continue;
    prepare({variable});
    const DType dtype = compute_dtype(variable.dtype());
    if (gradients[i].shape() != variable.shape() || gradients[i].dtype() != dtype) {
      throw ArgumentError(
          message(name_ + "Optimizer", "a gradient of ", dtype_name(gradients[i].dtype()), " ",
                  openrnn::to_string(gradients[i].shape()), " for '", variable.name(),
                  "', expected ", dtype_name(dtype), " ", openrnn::to_string(variable.shape())));
    }
  }
}

void Optimizer::update_all(const Step& step) {
  for (std::size_t i = 0; i < step.variables.size(); ++i) {
    if (step.gradients[i].empty()) continue;
    update_one(kept_.at(step.variables[i].leaf_id()), step.gradients[i], step.decision);
  }
}

// Last, as these are the caller's functions and may throw: the step itself is complete by then. The
// master copy of a variable follows at the next step, as after any other write.
void Optimizer::constrain(const Step& step) {
  for (std::size_t i = 0; i < step.variables.size(); ++i) {
    const Variable& variable = step.variables[i];
    const auto& constraint = variable.constraint();
    if (!constraint || step.gradients[i].empty()) continue;
    assign_if(step.decision, variable, constraint(variable.read()).value());
  }
}

void Optimizer::apply(Step& step) {
  check_gradients(step);
  update_all(step);
  if (const std::function<void()> advance = advance_scalars()) advance();
  count(step.global_step);
  constrain(step);
}

void Optimizer::apply_gradients(const std::vector<DeviceArray>& gradients,
                                const std::vector<Variable>& variables,
                                const Variable& global_step) {
  finish();
  Step step{gradients, variables, global_step};
  apply(step);
}

std::int64_t Optimizer::number_of(const Variable& global_step) {
  if (global_step.empty()) return steps_;
  const bool same = counted_.variable.same_as(global_step);
  // Its own write need not be read back, which would wait for the GPU.
  if (same && counted_.version == global_step.version()) return counted_.value;
  return scalar<std::int64_t>(global_step);
}

void Optimizer::count(const Variable& global_step) {
  const std::int64_t next = number_of(global_step) + 1;
  ++steps_;
  if (global_step.empty()) return;
  set_scalar(global_step, next);
  counted_ = {global_step, global_step.version(), next};
}

StepResult Optimizer::take_now(Step& step) {
  StepValues values;
  const auto refuse = [&](std::string_view what, double value) {
    throw ArgumentError(not_finite(name_, what, value, number_of(step.global_step)));
  };
  if (!step.loss.empty()) {
    values.loss = step.loss.item();
    if (!std::isfinite(values.loss) && loss_scale() == 1.0) refuse("a loss", values.loss);
  }
  values.gradient_norm = global_norm(step.gradients);
  values.applied = std::isfinite(values.gradient_norm);
  if (!adjust_loss_scale(loss_scale_, good_steps_, values.applied)) {
    refuse("gradients with a global norm", values.gradient_norm);
  }
  if (values.applied) {
    if (step.clip_norm > 0.0) clip_by_global_norm(step.gradients, step.clip_norm);
    apply(step);
  } else {
    count(step.global_step);
  }
  return StepResult(values);
}

std::vector<std::pair<Variable, SettledBy>> Optimizer::undecided(const Step& step) const {
  std::vector<std::pair<Variable, SettledBy>> all;
  const auto add = [&](const Variable& variable, SettledBy by) {
    if (!variable.empty()) all.emplace_back(variable, by);
  };
  for (std::size_t i = 0; i < step.variables.size(); ++i) {
    if (!step.gradients[i].empty()) add(step.variables[i], SettledBy::kToHost);
  }
  // Not by reading: loops use it to know when they are done.
  add(step.global_step, SettledBy::kWrite);
  add(loss_scale_, SettledBy::kRead);
  add(good_steps_, SettledBy::kRead);
  for (const auto& [name, each] : scalars()) add(each.now().variable, SettledBy::kRead);
  return all;
}

StepResult Optimizer::take_later(const Device& device, Step& step) {
  check_gradients(step);
  PendingStep::Plan plan{.optimizer = name_,
                         .number = number_of(step.global_step),
                         .loss_decides = !step.loss.empty() && loss_scale() == 1.0,
                         .loss_scale = loss_scale_,
                         .good_steps = good_steps_,
                         .global_step = step.global_step,
                         .advance = advance_scalars()};
  if (!step.loss.empty() && step.loss.value().size() != 1) step.loss.item();  // throws
  std::vector<ConstArrayView> arrays;
  for (const DeviceArray& each : step.gradients) {
    if (!each.empty()) arrays.push_back({each.data(), each.dtype(), each.shape()});
  }
  DeviceArray memory(device, DType::kFloat64, {sizeof(StepDecision) / sizeof(double)});
  auto* const decision = static_cast<StepDecision*>(memory.mutable_data());
  device.decide_step({.gradients = arrays,
                      .clip_norm = step.clip_norm,
                      .loss_dtype = step.loss.empty() ? DType::kFloat32 : step.loss.dtype(),
                      .loss = step.loss.empty() ? nullptr : step.loss.value().data(),
                      .loss_decides = plan.loss_decides,
                      .decision = decision});
  plan.decision = device.read_later(decision, sizeof(StepDecision));
  step.decision = decision;
  update_all(step);
  count(step.global_step);
  plan.undecided = undecided(step);
  pending_ = PendingStep::begin(std::move(plan));
  const StepResult result(pending_);
  constrain(step);
  return result;
}

void Optimizer::finish() {
  if (const auto last = std::exchange(pending_, nullptr)) last->report();
}

StepResult Optimizer::minimize(const GradientTape& tape, const Tensor& loss,
                               const std::vector<Variable>& variables, const Variable& global_step,
                               double clip_norm) {
  return clip_and_apply(compute_gradients(tape, loss, variables), variables, global_step,
                        clip_norm);
}

StepResult Optimizer::clip_and_apply(std::vector<DeviceArray> gradients,
                                     const std::vector<Variable>& variables,
                                     const Variable& global_step, double clip_norm,
                                     const Tensor& loss) {
  finish();
  const Device* const gpu = only_gpu(gradients, variables, loss);
  Step step{std::move(gradients), variables, global_step, clip_norm, loss};
  return gpu ? take_later(*gpu, step) : take_now(step);
}

}  // namespace openrnn::train
