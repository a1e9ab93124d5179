// The optimizers: their constants, slots and scalars.
#include <cmath>

#include "base/excerpt.h"
#include "openrnn/runtime.h"
#include "openrnn/train_optimizer.h"
#include "train/message.h"
#include "train/optimize/scalars.h"

namespace openrnn::train {
namespace {

void require(bool good, std::string_view call, std::string_view what, double value,
             std::string_view expected) {
  if (!good) throw ArgumentError(message(call, what, " ", value, ", expected ", expected));
}

bool is_rate(double value) { return value >= 0.0 && value < 1.0; }

/// A scalar variable of this graph. The host computes with it at every step.
template <class T>
Variable scalar_variable(const std::string& name, T value) {
  return Variable(free_name(name), Array::of<T>({}, std::span<const T>(&value, 1)), false,
                  &device("cpu"));
}

/// By squaring, as libm's pow has other bits on other machines.
double power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

}  // namespace

GradientDescentOptimizer::GradientDescentOptimizer(double learning_rate)
    : Optimizer("GradientDescent", learning_rate, {}) {}

OptimizerStep GradientDescentOptimizer::rule() const {
  OptimizerStep step;
  step.kind = OptimizerKind::kGradientDescent;
  step.learning_rate = learning_rate();
  return step;
}

MomentumOptimizer::MomentumOptimizer(double learning_rate, double momentum, bool use_nesterov)
    : Optimizer("Momentum", learning_rate, {{0.0, "momentum"}}),
      momentum_(momentum),
      use_nesterov_(use_nesterov) {
  require(is_rate(momentum), "MomentumOptimizer", "momentum", momentum, "0 to below 1");
}

OptimizerStep MomentumOptimizer::rule() const {
  OptimizerStep step;
  step.kind = use_nesterov_ ? OptimizerKind::kNesterov : OptimizerKind::kMomentum;
  step.learning_rate = learning_rate();
  step.momentum = momentum_;
  return step;
}

AdagradOptimizer::AdagradOptimizer(double learning_rate, double initial_accumulator_value)
    : Optimizer("Adagrad", learning_rate, {{initial_accumulator_value, "accumulator"}}) {
  require(initial_accumulator_value > 0.0 && std::isfinite(initial_accumulator_value),
          "AdagradOptimizer", "initial_accumulator_value", initial_accumulator_value,
          "a number above 0");
}

OptimizerStep AdagradOptimizer::rule() const {
  OptimizerStep step;
  step.kind = OptimizerKind::kAdagrad;
  step.learning_rate = learning_rate();
  return step;
}

RMSPropOptimizer::RMSPropOptimizer(double learning_rate, double decay, double momentum,
                                   double epsilon, bool centered)
    : Optimizer("RMSProp", learning_rate,
                centered ? std::vector<SlotRule>{{1.0, "rms"}, {0.0, "mg"}, {0.0, "momentum"}}
                         : std::vector<SlotRule>{{1.0, "rms"}, {0.0, "momentum"}}),
      decay_(decay),
      momentum_(momentum),
      epsilon_(epsilon),
      centered_(centered) {
  require(decay >= 0.0 && decay <= 1.0, "RMSPropOptimizer", "decay", decay, "0 to 1");
  require(is_rate(momentum), "RMSPropOptimizer", "momentum", momentum, "0 to below 1");
  require(epsilon >= 0.0, "RMSPropOptimizer", "epsilon", epsilon, "at least 0");
}

OptimizerStep RMSPropOptimizer::rule() const {
  OptimizerStep step;
  step.kind = centered_ ? OptimizerKind::kCenteredRmsProp : OptimizerKind::kRmsProp;
  step.learning_rate = learning_rate();
  step.decay = decay_;
  step.momentum = momentum_;
  step.epsilon = epsilon_;
  return step;
}

AdamOptimizer::AdamOptimizer(double learning_rate, double beta1, double beta2, double epsilon)
    : Optimizer("Adam", learning_rate, {{0.0, "m"}, {0.0, "v"}}),
      beta1_(static_cast<float>(beta1)),
      beta2_(static_cast<float>(beta2)),
      epsilon_(epsilon) {
  require(is_rate(beta1) && beta1_ < 1.0F, "AdamOptimizer", "beta1", beta1, "0 to below 1");
  require(is_rate(beta2) && beta2_ < 1.0F, "AdamOptimizer", "beta2", beta2, "0 to below 1");
  require(epsilon >= 0.0, "AdamOptimizer", "epsilon", epsilon, "at least 0");
}

void AdamOptimizer::make_scalars() {
  beta1_power_ = scalar_variable("beta1_power", beta1_);
  beta2_power_ = scalar_variable("beta2_power", beta2_);
}

OptimizerStep AdamOptimizer::rule() const {
  OptimizerStep step;
  step.kind = OptimizerKind::kAdam;
  step.beta1 = beta1_;
  step.beta2 = beta2_;
  step.epsilon = epsilon_;
  step.learning_rate = learning_rate() * std::sqrt(1.0 - scalar<float>(beta2_power_)) /
                       (1.0 - scalar<float>(beta1_power_));
  return step;
}

std::function<void()> AdamOptimizer::advance_scalars() const {
  const auto multiply = [](const Variable& power, float beta) {
    const float next = scalar<float>(power) * beta;
    power.assign(ConstArrayView{&next, DType::kFloat32, {}});
  };
  return [=, power1 = beta1_power_, power2 = beta2_power_, beta1 = beta1_, beta2 = beta2_] {
    multiply(power1, beta1);
    multiply(power2, beta2);
  };
}

NamedTrackables AdamOptimizer::scalars() const {
  if (beta1_power_.empty()) return {};
  return {{"beta1_power", beta1_power_}, {"beta2_power", beta2_power_}};
}

AdamWOptimizer::AdamWOptimizer(double learning_rate, double beta1, double beta2, double epsilon,
                               double weight_decay)
    : Optimizer(weight_decay > 0.0 ? "AdamW" : "Adam", learning_rate, {{0.0, "m"}, {0.0, "v"}}),
      beta1_(beta1),
      beta2_(beta2),
      epsilon_(epsilon),
      weight_decay_(weight_decay) {
  require(is_rate(beta1), "AdamWOptimizer", "beta1", beta1, "0 to below 1");
  require(is_rate(beta2), "AdamWOptimizer", "beta2", beta2, "0 to below 1");
  require(epsilon >= 0.0 && std::isfinite(epsilon), "AdamWOptimizer", "epsilon", epsilon,
          "a finite number of at least 0");
  require(weight_decay >= 0.0 && std::isfinite(weight_decay), "AdamWOptimizer", "weight_decay",
          weight_decay, "a finite number of at least 0");
}

void AdamWOptimizer::make_scalars() { step_ = scalar_variable<std::int64_t>("adam_step", 0); }

OptimizerStep AdamWOptimizer::rule() const {
  const std::int64_t t = scalar<std::int64_t>(step_) + 1;
  const double root = std::sqrt(1.0 - power(beta2_, t));
  OptimizerStep step;
  step.kind = OptimizerKind::kAdamW;
  step.beta1 = beta1_;
  step.beta2 = beta2_;
  // m / (sqrt(v) / root + epsilon) = root * m / (sqrt(v) + epsilon * root).
  step.epsilon = epsilon_ * root;
  step.learning_rate = learning_rate() * root / (1.0 - power(beta1_, t));
  step.decay = 1.0 - learning_rate() * weight_decay_;
  return step;
}

std::function<void()> AdamWOptimizer::advance_scalars() const {
  return [step = step_] { set_scalar(step, scalar<std::int64_t>(step) + 1); };
}

NamedTrackables AdamWOptimizer::scalars() const {
  if (step_.empty()) return {};
  return {{"adam_step", step_}};
}

namespace {
constexpr std::array<std::string_view, 6> kOptimizers{"sgd",     "momentum", "nesterov",
                                                      "adagrad", "rmsprop",  "adam"};
}  // namespace

std::span<const std::string_view> optimizer_names() { return kOptimizers; }

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, double learning_rate) {
  if (name == "sgd") return std::make_unique<GradientDescentOptimizer>(learning_rate);
  if (name == "momentum") return std::make_unique<MomentumOptimizer>(learning_rate, 0.9);
  if (name == "nesterov") return std::make_unique<MomentumOptimizer>(learning_rate, 0.9, true);
  if (name == "adagrad") return std::make_unique<AdagradOptimizer>(learning_rate);
  if (name == "rmsprop") return std::make_unique<RMSPropOptimizer>(learning_rate);
  if (name == "adam") return std::make_unique<AdamOptimizer>(learning_rate);
  std::string names;
  for (const std::string_view known : kOptimizers)
    names.append(names.empty() ? "" : ", ").append(known);
  throw ArgumentError(message("make_optimizer", "'", excerpt(name), "', expected one of ", names));
}

}  // namespace openrnn::train
