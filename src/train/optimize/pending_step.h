// A step that a device decides on.
#pragma once

#include <mutex>

#include "openrnn/train_optimizer.h"

namespace openrnn::train {

/// The step is enqueued; its decision is being copied to the host. Settling does the host's part:
/// it advances scalars and the loss scale, or keeps the step's error and reverts its count.
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

  // Recursive: settling reads variables that await it.
  std::recursive_mutex mutex_;
  bool settled_ = false, told_ = false;
  Plan plan_;  // empty once it is settled, as its variables may hold this step
  StepValues values_;
  std::string error_;
};

/// The error of a rejected step; `what` names a loss or a norm that is not finite.
std::string not_finite(const std::string& optimizer, std::string_view what, double value,
                       std::int64_t step);

}  // namespace openrnn::train
