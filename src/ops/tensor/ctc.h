// The alignments of one row's labels with its steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace openrnn::ops {

/// Log-probabilities of T steps and C classes: step t, class c at t * stride + c.
struct CtcRow {
  std::int64_t steps = 0, classes = 0, stride = 0, blank = 0;
  const double* log_probabilities = nullptr;
  std::span<const std::int32_t> labels;
};
/// Minus the logarithm of the probability of all alignments: infinite if there is none. Into
/// `gradient` (null: not wanted), laid out as the log-probabilities: that of the loss by the logits
/// of the softmax they come from, 0 if there is no alignment.
double ctc_row(const CtcRow& row, double* gradient);

}  // namespace openrnn::ops
