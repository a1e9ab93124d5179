// The order of every sum of products and of columns: the same for all instruction sets and devices.
#pragma once

#include <stdint.h>

namespace openrnn {

/// Terms in ascending order make blocks, blocks spans, and spans the sum. A block is one chain of
/// fused multiply-adds that begins at 0; the blocks of a span are added from the first to the last,
/// then the spans. What the sum begins with (`accumulate`) precedes its first span; a bias and
/// other sums join it at the end. The error grows as the root of 32 / 2 + 16 / 2 + n / 1024 instead
/// of n / 2. Sums of columns (gradients of biases, `column_sum`) are in float64 up to a span, which
/// is rounded to the type of the sum before it joins the others.
inline constexpr int64_t kSumBlock = 32, kSumSpan = 512;

/// Gradients of weights and biases sum over time and batch: groups of this many whole steps from t
/// = 0 on, the last group first; inside a group t, then the row, in spans that begin with the
/// group. So a backward pass in chunks of whole groups continues the same sums.
inline constexpr int64_t kGradientSteps = 32;

/// Raised with every change of the bits that training gives. 1 was one chain for a whole sum, 2 had
/// blocks of 64 and sums of columns in float32.
inline constexpr int kArithmeticVersion = 3;

}  // namespace openrnn
