// Learning-rate schedules without libm, whose bits differ between machines.
#include <array>
#include <cmath>
#include <string>

#include "base/excerpt.h"
#include "openrnn/train_optimizer.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr std::array<std::string_view, 3> kNames{"constant", "exponential", "cosine"};

/// cos(pi * x) for x in [0, 1]: about the middle it is an odd function, of which 12 terms of the
/// series leave less than half an ulp at pi / 2.
double cos_pi(double x) {
  const double y = (0.5 - x) * 3.14159265358979323846;
  double term = y, sum = y;
  for (int n = 1; n <= 12; ++n) {
    term *= -y * y / (2.0 * n * (2.0 * n + 1.0));
    sum += term;
  }
  return sum;
}

}  // namespace

std::string_view to_string(ScheduleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

ScheduleKind parse_schedule(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ScheduleKind>(i);
  }
  throw ArgumentError(
      message("parse_schedule", "'", excerpt(name), "', expected constant, exponential or cosine"));
}

void Schedule::validate() const {
  const auto refuse = [](auto... parts) { throw ArgumentError(message("Schedule", parts...)); };
  if (!std::isfinite(learning_rate) || learning_rate < 0.0) {
    refuse("learning_rate ", learning_rate, ", expected a finite number of at least 0");
  }
  if (warmup_steps < 0) refuse("warmup_steps ", warmup_steps, ", expected 0 or more");
  if (kind != ScheduleKind::kConstant && decay_steps <= 0) {
    refuse("decay_steps ", decay_steps, ", expected 1 or more for a schedule that decays");
  }
  if (kind == ScheduleKind::kExponential && !(decay_rate > 0.0 && decay_rate <= 1.0)) {
    refuse("decay_rate ", decay_rate, ", expected more than 0 and at most 1");
  }
  if (kind == ScheduleKind::kCosine && !(final_fraction >= 0.0 && final_fraction <= 1.0)) {
    refuse("final_fraction ", final_fraction, ", expected 0 to 1");
  }
}

double Schedule::at(std::int64_t step) const {
  if (step < warmup_steps) {
    return learning_rate * (static_cast<double>(step + 1) / static_cast<double>(warmup_steps));
  }
  const auto after = static_cast<double>(step - warmup_steps);
  switch (kind) {
    case ScheduleKind::kConstant:
      break;
    case ScheduleKind::kExponential:
      return learning_rate *
             portable_exp(portable_log(decay_rate) * (after / static_cast<double>(decay_steps)));
    case ScheduleKind::kCosine: {
      const auto length = static_cast<double>(decay_steps - warmup_steps);
      if (length <= after || length <= 0.0) return learning_rate * final_fraction;
      const double shape = 0.5 * (1.0 + cos_pi(after / length));
      return learning_rate * (final_fraction + (1.0 - final_fraction) * shape);
    }
  }
  return learning_rate;
}

}  // namespace openrnn::train
