// A step that a device decides on.
#pragma once

#include <mutex>

#include "openrnn/train_optimizer.h"

namespace openrnn::train {

/// The step is enqueued; its decision is on its way to the host. Settling does what the host has to
/// do after it: scalars and the loss scale, or the step's error and its number taken back.
class PendingStep final : public OpenChange {
 public:
  struct Plan {
    std::unique_ptr<Reading> decision = nullptr;
    std::string optimizer = {};  // for errors
    std::int64_t number = 0;
    bool loss_decides = false;
    Variable loss_scale = {}, good_steps = {}, global_step = {};  // empty: none
    std::function<void()> advance = {};                           // if it is applied
    std::vector<std::pair<Variable, SettledBy>> undecided = {};
  };
  /// Its variables await it.
  static std::shared_ptr<PendingStep> begin(Plan plan);
  void settle() override;
  void report() override;
  bool settled();
  /// Settles and reports first.
  const StepValues& values();

 private:
  std::string follow(const StepDecision& decision, const Plan& plan) const;

  // Of one thread more than once: what it does on the host reads variables that await it.
  std::recursive_mutex mutex_;
  bool settled_ = false, told_ = false;
  Plan plan_;  // empty once it is settled, as its variables may hold this step
  StepValues values_;
  std::string error_;
};

/// What a step is refused with; `what` names a loss or a norm that is not finite.
std::string not_finite(const std::string& optimizer, std::string_view what, double value,
                       std::int64_t step);

}  // namespace openrnn::train
