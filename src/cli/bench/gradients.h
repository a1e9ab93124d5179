// Training in less memory, and gradients of gradients, against a plain step of training.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace openrnn::cli {

struct GradientCost {
  std::string config;  // "LSTM L4 U256 B32 T256"
  std::string call;    // "save=inputs", "gradients of gradients", "jvp"
  /// Median, over rounds in which both are timed one after the other, of its time to that of
  /// forward and backward.
  double ratio = 0.0;
  double milliseconds = 0.0, plain_milliseconds = 0.0;
  /// What forward keeps for backward, of "save=inputs".
  std::optional<double> kept_mb, plain_kept_mb;
};

/// In the order in which they are measured; `only` is part of "CONFIG CALL".
std::vector<GradientCost> measure_gradients(const std::string& only,
                                            const std::function<void(const GradientCost&)>& report);

}  // namespace openrnn::cli
