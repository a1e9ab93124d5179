// Operations on tensors, each with a gradient, and the recurrent ones.
#pragma once

#include "openrnn/graph.h"
#include "openrnn/ops_cudnn.h"
#include "openrnn/ops_rnn.h"
#include "openrnn/ops_tensor.h"

/// Every operation records itself while recording() is true, runs on the device of its inputs and
/// gives the same bits for any number of threads. The inputs of one call must be on one device:
/// unplaced host data is copied to the device of the others, indices and labels to where they are
/// used; anything else is an error. Throws: ArgumentError naming the call, what was given and what
/// was expected.
namespace openrnn::ops {

// ---- Products ----------------------------------------------------------------------------------

/// Which operands of matmul are transposed first.
struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
/// op(a) [M, K] times op(b) [K, N].
OPENRNN_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// x [.., I] times kernel [I, N], plus bias [N] unless that is empty: [.., N].
OPENRNN_API Tensor dense(const Tensor& x, const Tensor& kernel, const Tensor& bias = {});

// ---- Elementwise -------------------------------------------------------------------------------

/// a and b have the same shape and dtype.
OPENRNN_API Tensor add(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor subtract(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor multiply(const Tensor& a, const Tensor& b);
OPENRNN_API Tensor divide(const Tensor& a, const Tensor& b);
/// The sum of several of the same shape and dtype, from left to right.
OPENRNN_API Tensor add_n(const std::vector<Tensor>& terms);
/// x [.., N] plus row [N].
OPENRNN_API Tensor add_row(const Tensor& x, const Tensor& row);
/// x + term.
OPENRNN_API Tensor add_scalar(const Tensor& x, double term);
/// factor * x.
OPENRNN_API Tensor scale(const Tensor& x, double factor);

/// min(max(x, low), high), the bounds rounded to the dtype of x. The gradient passes where
/// low <= x <= high and is 0 elsewhere, as that of tf.clip_by_value; NaN passes. Throws:
/// ArgumentError unless low <= high.
OPENRNN_API Tensor clip(const Tensor& x, double low, double high);

/// max(0, x); the gradient at 0 is 0.
OPENRNN_API Tensor relu(const Tensor& x);
OPENRNN_API Tensor tanh(const Tensor& x);
/// 1 / (1 + exp(-x)).
OPENRNN_API Tensor sigmoid(const Tensor& x);
OPENRNN_API Tensor exp(const Tensor& x);
OPENRNN_API Tensor negate(const Tensor& x);
OPENRNN_API Tensor square(const Tensor& x);
/// Correctly rounded; its gradient at 0 is infinite.
OPENRNN_API Tensor sqrt(const Tensor& x);
/// The gradient at 0 is 0.
OPENRNN_API Tensor absolute(const Tensor& x);
/// In another floating dtype, each element rounded to nearest even once; the gradient has the dtype
/// of x.
OPENRNN_API Tensor cast(const Tensor& x, DType dtype);
/// x * mask, the mask of Device::dropout over rows of the last dimension. Where the key is of a
/// part of a batch, x is [batch, ..].
OPENRNN_API Tensor dropout(const Tensor& x, double rate, DropoutKey key);
/// The same with the key that next_key returns: asked for it when nothing refuses the call any
/// more, so that a refused call uses up none. Recorded, each computation draws other masks.
OPENRNN_API Tensor next_dropout(const Tensor& x, double rate,
                                const std::function<DropoutKey()>& next_key);
/// The same with the state's next key. In a PartScope x lies as that says.
/// Throws: ArgumentError where x does not have the part's rows.
OPENRNN_API Tensor next_dropout(const Tensor& x, double rate, DropoutState& state);

// ---- Reductions to a scalar (shape []): float32 for 16 bits, else the dtype of x ---------------

/// 0 for an empty tensor.
OPENRNN_API Tensor reduce_sum(const Tensor& x);
/// 0 for an empty tensor.
OPENRNN_API Tensor reduce_mean(const Tensor& x);
/// Sum of squares times factor / 2, as TensorFlow's l2_regularizer(factor).
OPENRNN_API Tensor l2_regularization(const Tensor& x, double factor);
/// Sum of absolute values times factor; the gradient at 0 is 0.
OPENRNN_API Tensor l1_regularization(const Tensor& x, double factor);

// ---- Shapes ------------------------------------------------------------------------------------

/// The same elements; one dimension may be -1.
OPENRNN_API Tensor reshape(const Tensor& x, const Shape& shape);
/// A negative axis counts from the end.
OPENRNN_API Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis);
/// Of the given sizes along `axis`, which they add up to.
OPENRNN_API std::vector<Tensor> split(const Tensor& x, std::int64_t axis,
                                      const std::vector<std::int64_t>& sizes);
/// `size` elements from `begin` along `axis`.
struct SliceRange {
  std::int64_t axis = 0, begin = 0, size = 0;
};
/// Throws: ArgumentError for a range outside the axis.
OPENRNN_API Tensor slice(const Tensor& x, const SliceRange& range);
/// Along a new leading axis.
OPENRNN_API Tensor stack(const std::vector<Tensor>& parts);
/// The inverse: the parts along the leading axis, which is removed.
OPENRNN_API std::vector<Tensor> unstack(const Tensor& x);
/// [A, B, ..] to [B, A, ..].
OPENRNN_API Tensor transpose_leading(const Tensor& x);
/// Each row's first lengths[row] steps in reverse, the rest as they are. x is [T, B, ..], or
/// [B, T, ..]; empty lengths reverse everything.
OPENRNN_API Tensor reverse_sequence(const Tensor& x, const std::vector<std::int32_t>& lengths,
                                    bool time_major = true);
/// The same of lengths [B], an int32 tensor that may be symbolic.
OPENRNN_API Tensor reverse_sequence_by(const Tensor& x, const Tensor& lengths,
                                       bool time_major = true);
/// Along the leading axis: a's row where `choose` is true, else b's. A row that is not chosen is
/// not read, and its gradient is 0.
OPENRNN_API Tensor select_rows(const std::vector<bool>& choose, const Tensor& a, const Tensor& b);

// ---- Lookup and losses -------------------------------------------------------------------------

/// table [N, D] at int32 indices [..]: [.., D]. Throws: ArgumentError naming position, value and
/// range.
OPENRNN_API Tensor embedding_lookup(const Tensor& table, const Tensor& indices);
/// Rows of 0 with one 1: indices [..] to [.., depth]; an index below 0 gives a row of 0. No
/// gradient. Throws: as embedding_lookup for an index at or above depth.
OPENRNN_API Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype);
/// Over the last dimension.
OPENRNN_API Tensor softmax(const Tensor& logits);
/// Loss in nats of each row of logits [.., C] against int32 labels [..]; 0 for a label below 0. The
/// losses are float32, or float64 for float64 logits. Throws: ArgumentError naming position and
/// value of a label that is C or above.
OPENRNN_API Tensor softmax_cross_entropy_rows(const Tensor& logits, const Tensor& labels);
/// The mean of those over rows whose label is 0 or above; 0 when there is none.
OPENRNN_API Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels);
/// Mean of (a - b)^2 over all elements, as reduce_mean.
OPENRNN_API Tensor mean_squared_error(const Tensor& a, const Tensor& b);

}  // namespace openrnn::ops
