// The order of every sum of products and of columns: the same for all instruction sets and devices.
#pragma once

#include <stdint.h>

namespace openrnn {

/// Terms in ascending order make blocks, blocks spans, and spans the sum. A block is one chain of
/// fused multiply-adds that begins at 0; the blocks of a span are added from the first to the last,
/// then the spans. What the sum begins with (`accumulate`) precedes its first span; a bias and
/// other sums join it at the end. The error grows as the root of 64 / 2 + 8 / 2 + n / 1024 instead
/// of n / 2.
inline constexpr int64_t kSumBlock = 64, kSumSpan = 512;

/// Gradients of weights and biases sum over time and batch: groups of so many whole steps from t =
/// 0 on, the last group first; inside a group t, then the row, in spans that begin with the group.
/// So a backward pass in chunks of whole groups goes on with the same sums.
inline constexpr int64_t kGradientSteps = 32;

/// Raised with every change of the bits that training gives. 1 was one chain for a whole sum.
inline constexpr int kArithmeticVersion = 2;

}  // namespace openrnn
