// Operations with NumPy's shapes: broadcasting, reductions along axes, views, batched products.
//
// Two shapes broadcast if, from the last dimension on, sizes are equal or one of them is 1; a
// missing dimension counts as 1. A gradient is summed over what was broadcast, in the order of
// docs/numerics.md. A negative axis counts from the end.
#pragma once

#include "openrnn/graph.h"

namespace openrnn::ops {

// ---- Broadcasting ------------------------------------------------------------------------------

/// x in a shape that it broadcasts to. Throws: ArgumentError for another one.
OPENRNN_API Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// The inverse: x summed over what broadcast_to would repeat. One rounding to the dtype of x.
OPENRNN_API Tensor sum_to(const Tensor& x, const Shape& shape);
/// The larger one, NaN where an operand is; the gradient flows to a where a >= b, else to b.
OPENRNN_API Tensor maximum(const Tensor& a, const Tensor& b);
/// The smaller one; the gradient flows to a where a <= b, else to b.
OPENRNN_API Tensor minimum(const Tensor& a, const Tensor& b);
/// a^b with the special cases of IEEE 754, within 2 ulp. The gradient to b is 0 where a <= 0.
OPENRNN_API Tensor power(const Tensor& a, const Tensor& b);
/// min(max(x, low), high) with bounds that broadcast. Throws: nothing for low above high, which
/// gives high.
OPENRNN_API Tensor clip_between(const Tensor& x, const Tensor& low, const Tensor& high);

/// Bool tensors, of floating operands or of two of one integer dtype; no gradient. A NaN is not
/// equal to anything, nor less or greater.
OPENRNN_API Tensor equal(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor not_equal(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor less(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor less_equal(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor greater(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor greater_equal(const Tensor& a, const Tensor& b);
/// Of truth values, or of numbers: true where they are not 0. Found on the host.
OPENRNN_API Tensor logical_not(const Tensor& a);
OPENRNN_API Tensor logical_and(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor logical_or(const Tensor& a, const Tensor& b);
/// a where the condition is true (of numbers: not 0), else b; all three broadcast. What is not
/// chosen does not matter, NaN neither, and its gradient is 0.
OPENRNN_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// ---- Elementwise -------------------------------------------------------------------------------

/// Within 2 ulp; -inf of 0 and of subnormals, NaN below.
OPENRNN_API Tensor log(const Tensor& x);
/// log(1 + e^x), within 2 ulp.
OPENRNN_API Tensor softplus(const Tensor& x);
/// `value` in the shape and dtype of x, which may be symbolic. No gradient.
OPENRNN_API Tensor full_like(const Tensor& x, double value);

// ---- Reductions --------------------------------------------------------------------------------

struct ReduceOptions {
  /// Unset: all.
  std::optional<std::vector<std::int64_t>> axes = {};
  /// Whether reduced dimensions stay, of size 1.
  bool keepdims = false;
};
/// Sums, means and what is made of them are float32 for 16 bits, else the dtype of x; 0 of nothing.
OPENRNN_API Tensor reduce_sum(const Tensor& x, const ReduceOptions& options);
OPENRNN_API Tensor reduce_mean(const Tensor& x, const ReduceOptions& options);
/// NaN where there is one; the gradient is shared by equal elements. Throws: ArgumentError for the
/// maximum of nothing.
OPENRNN_API Tensor reduce_max(const Tensor& x, const ReduceOptions& options = {});
OPENRNN_API Tensor reduce_min(const Tensor& x, const ReduceOptions& options = {});
/// The mean of squared distances from the mean.
OPENRNN_API Tensor reduce_variance(const Tensor& x, const ReduceOptions& options = {});
/// Its root; the gradient is infinite, or NaN, where it is 0.
OPENRNN_API Tensor reduce_std(const Tensor& x, const ReduceOptions& options = {});
/// log(sum(exp(x))), without overflow.
OPENRNN_API Tensor reduce_logsumexp(const Tensor& x, const ReduceOptions& options = {});
/// int32 positions of the first maximum along the axis; the first NaN counts as one. Found on the
/// host.
OPENRNN_API Tensor argmax(const Tensor& x, std::int64_t axis);
OPENRNN_API Tensor argmin(const Tensor& x, std::int64_t axis);
/// Along any axis.
OPENRNN_API Tensor softmax_along(const Tensor& logits, std::int64_t axis);
/// x - log(sum(exp(x))).
OPENRNN_API Tensor log_softmax(const Tensor& logits, std::int64_t axis = -1);

// ---- Shapes ------------------------------------------------------------------------------------

/// Dimension i of the result is perm[i] of x; empty: all in reverse. Throws: ArgumentError unless
/// each axis is named once.
OPENRNN_API Tensor transpose(const Tensor& x, const std::vector<std::int64_t>& perm = {});
/// x repeated along each axis.
OPENRNN_API Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples);
/// A dimension of size 1 before that axis; -1: at the end.
OPENRNN_API Tensor expand_dims(const Tensor& x, std::int64_t axis);
/// Without those dimensions, which are of size 1; empty: without all of size 1.
OPENRNN_API Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes = {});
/// Steps of an axis as a slice of Python names them.
struct StepRange {
  std::int64_t axis = 0;
  std::optional<std::int64_t> begin = {}, end = {};
  std::int64_t step = 1;
};
/// Throws: ArgumentError for a step of 0.
OPENRNN_API Tensor strided_slice(const Tensor& x, const StepRange& range);
/// x at int32 indices [..] of one axis, which their shape replaces. Throws: ArgumentError naming
/// position, value and range.
OPENRNN_API Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);

// ---- Products ----------------------------------------------------------------------------------

/// One operand or two, as 'bij,bjk->bik' says; without '->' the letters that occur once, in
/// alphabetical order. Throws: ArgumentError for letters that do not fit, UnsupportedError for one
/// that is twice in an operand and for '...'.
OPENRNN_API Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

// ---- Losses ------------------------------------------------------------------------------------

/// Elementwise, of logits x and labels z in [0, 1], z * softplus(-x) + (1 - z) * softplus(x).
OPENRNN_API Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& labels);
/// The same of probabilities, which are kept within [epsilon, 1 - epsilon].
OPENRNN_API Tensor binary_cross_entropy_rows(const Tensor& probabilities, const Tensor& labels,
                                             double epsilon = 1e-7);

/// Which steps and labels of each row count, and which class separates labels.
struct CtcOptions {
  std::vector<std::int32_t> logit_lengths = {};  // [B]; empty: all T
  std::vector<std::int32_t> label_lengths = {};  // [B]; empty: the labels before the first below 0
  std::int64_t blank = 0;                        // a negative one counts from the end
  bool time_major = true;
};
/// Connectionist temporal classification (Graves et al., 2006): the loss in nats of each row, [B],
/// of logits [T, B, C] ([B, T, C] unless time_major) against int32 labels [B, L]: minus the
/// logarithm of the probability of all alignments together. In double, float32 unless the logits
/// are float64; infinite, with a gradient of 0, where a row has fewer steps than its labels need.
/// Steps past a row's length are not read. Computed on the host. Throws: ArgumentError for lengths
/// and labels out of range.
OPENRNN_API Tensor ctc_loss(const Tensor& logits, const Tensor& labels,
                            const CtcOptions& options = {});

}  // namespace openrnn::ops
