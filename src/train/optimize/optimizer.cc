// What all optimizers share: slots, float32 master copies, gradients of scaled losses.
#include <cmath>
#include <optional>

#include "graph/tape/listen.h"
#include "openrnn/runtime.h"
#include "train/message.h"
#include "train/optimize/pending_step.h"
#include "train/optimize/scalars.h"

namespace openrnn::train {
namespace {

constexpr float kFirstLossScale = 32768.0F;  // 2^15

Array filled(const Shape& shape, DType dtype, double value) {
  Array array(dtype, shape);
  if (dtype == DType::kFloat64) {
    for (double& x : array.as<double>()) x = value;
  } else {
    for (float& x : array.as<float>()) x = static_cast<float>(value);
  }
  return array;
}

DeviceArray converted(const DeviceArray& from, DType dtype) {
  DeviceArray to(from.device(), dtype, from.shape());
  from.device().convert(from.size(), from.dtype(), from.data(), dtype, to.mutable_data());
  return to;
}

}  // namespace

std::string free_name(const std::string& name) {
  std::string free = name;
  for (int i = 1; Graph::current().has_variable(free); ++i) free = name + "_" + std::to_string(i);
  return free;
}

Optimizer::Optimizer(std::string name, double learning_rate, std::vector<SlotRule> slots)
    : name_(std::move(name)), learning_rate_(0.0), slot_rules_(std::move(slots)) {
  set_learning_rate(learning_rate);
}

Optimizer::~Optimizer() {
  if (!pending_) return;
  try {
    pending_->settle();
  } catch (const std::exception&) {
    // The GPU has failed: the next call reports it.
  }
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

void Optimizer::prepare_scale(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    check_floating(variable);
    // bfloat16 has the range of float32, where no gradient underflows that float32 keeps.
    if (variable.dtype() == DType::kFloat16 && loss_scale_.empty()) make_loss_scale();
  }
}

void Optimizer::check_floating(const Variable& variable) const {
  if (is_floating(variable.dtype())) return;
  throw ArgumentError(message(name_ + "Optimizer", "variable '", variable.name(), "' of ",
                              dtype_name(variable.dtype()), ", expected a floating dtype"));
}

void Optimizer::make_kept(const Variable& variable) {
  check_floating(variable);
  if (kept_.empty()) make_scalars();
  prepare_scale({variable});
  Kept kept;
  kept.variable = variable;
  const DType dtype = compute_dtype(variable.dtype());
  if (dtype != variable.dtype()) {
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
                                                      const std::vector<Variable>& variables,
                                                      double weight) {
  // Now, as the GPU is computing the loss meanwhile; and the scale depends on it.
  finish();
  prepare_scale(variables);
  // It is the gradient of the loss, so that nothing else needs scaling; a part of a batch then has
  // no larger values on its way back than the batch.
  const double scale = loss_scale() * weight;
  double factor = 1.0;
  DeviceArray start;
  if (scale != 1.0) {
    const Array wide = filled(loss.shape(), compute_dtype(loss.dtype()), scale);
    const Array given = cast(wide.view(), loss.dtype());
    start = DeviceArray::from_host(loss.value().device(), given.view());
    // What was given in place of the weight: 16 bits may have rounded it.
    const bool rounds = given.size() > 0 && compute_dtype(loss.dtype()) != loss.dtype();
    const double used = rounds ? element(given.view(), 0) : scale;
    factor = weight / (std::isfinite(used) ? used : scale);
  }
  // What is scaled below is not complete before.
  std::optional<graph::Listening> nobody;
  if (factor != 1.0) nobody.emplace(nullptr);
  std::vector<DeviceArray> gradients = tape.gradient(loss, variables, start);
  for (DeviceArray& gradient : gradients) {
    if (gradient.empty()) continue;
    const DType dtype = compute_dtype(gradient.dtype());
    if (gradient.dtype() != dtype) gradient = converted(gradient, dtype);
    if (factor == 1.0) continue;
    gradient.make_unique_owner();
    gradient.device().scale(gradient.dtype(), gradient.size(), factor, gradient.data(),
                            gradient.mutable_data());
  }
  return gradients;
}

Variable get_or_create_global_step() {
  Graph& graph = Graph::current();
  if (graph.has_variable("global_step")) return graph.variable("global_step");
  const Variable made("global_step", Array(DType::kInt64, {}), false, &device("cpu"));
  graph.keep(made);  // asked for by name, wherever a step is counted
  return made;
}

}  // namespace openrnn::train
