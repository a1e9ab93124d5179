#include "train/optimize/pending_step.h"

#include <cmath>
#include <cstring>

#include "train/message.h"
#include "train/optimize/scalars.h"

namespace openrnn::train {
namespace {

constexpr float kLastLossScale = 16777216.0F;  // 2^24: beyond it scaled losses overflow float16
constexpr float kLeastLossScale = 1.0F / 65536.0F;
constexpr std::int64_t kGoodStepsToDouble = 2000;

}  // namespace

bool adjust_loss_scale(const Variable& loss_scale, const Variable& good_steps, bool finite) {
  if (loss_scale.empty()) return finite;
  const auto scale = scalar<float>(loss_scale);
  if (!finite) {
    if (scale <= kLeastLossScale) return false;
    set_scalar(loss_scale, scale * 0.5F);
    set_scalar<std::int64_t>(good_steps, 0);
    return true;
  }
  const std::int64_t good = scalar<std::int64_t>(good_steps) + 1;
  const bool raise = good >= kGoodStepsToDouble && scale < kLastLossScale;
  if (raise) set_scalar(loss_scale, scale * 2.0F);
  set_scalar<std::int64_t>(good_steps, good >= kGoodStepsToDouble ? 0 : good);
  return true;
}

std::string not_finite(const std::string& optimizer, std::string_view what, double value,
                       std::int64_t step) {
  const std::string_view expected = what == "a loss" ? "a finite one" : "finite ones";
  return message(optimizer + "Optimizer", what, " of ", value, " at step ", step, ", expected ",
                 expected, " (a lower learning rate may help)");
}

std::shared_ptr<PendingStep> PendingStep::begin(Plan plan) {
  const auto undecided = plan.undecided;
  auto step = std::make_shared<PendingStep>();
  step->plan_ = std::move(plan);
  for (const auto& [variable, by] : undecided) variable.await(step, by);
  return step;
}

std::string PendingStep::follow(const StepDecision& decision, const Plan& plan) const {
  const bool finite = std::isfinite(decision.norm);
  if (plan.loss_decides && !std::isfinite(decision.loss)) {
    return not_finite(plan.optimizer, "a loss", decision.loss, plan.number);
  }
  if (!adjust_loss_scale(plan.loss_scale, plan.good_steps, finite)) {
    return not_finite(plan.optimizer, "gradients with a global norm", decision.norm, plan.number);
  }
  if (finite && plan.advance) plan.advance();
  return {};
}

void PendingStep::settle() {
  const std::lock_guard lock(mutex_);
  if (settled_) return;
  StepDecision decision;
  std::memcpy(&decision, plan_.decision->bytes(), sizeof(decision));
  settled_ = true;
  const Plan plan = std::exchange(plan_, {});
  values_ = {decision.taken != 0.0, decision.norm, decision.loss};
  error_ = follow(decision, plan);
  if (error_.empty()) {
    for (const auto& [variable, by] : plan.undecided) variable.forget(*this);
  } else if (!plan.global_step.empty()) {
    set_scalar(plan.global_step, scalar<std::int64_t>(plan.global_step) - 1);
  }
}

void PendingStep::report() {
  settle();
  const std::lock_guard lock(mutex_);
  if (error_.empty() || told_) return;
  told_ = true;
  throw ArgumentError(error_);
}

bool PendingStep::settled() {
  const std::lock_guard lock(mutex_);
  return settled_;
}

const StepValues& PendingStep::values() {
  report();
  return values_;
}

bool StepResult::known() const { return !step_ || step_->settled(); }

const StepValues& StepResult::values() const { return step_ ? step_->values() : values_; }

}  // namespace openrnn::train
