// Gradients of operations by operations that are recorded themselves: what a gradient of a gradient
// goes through. Each has the bits of the operation's own gradient on arrays.
#pragma once

#include "openrnn/ops.h"
#include "ops/support/support.h"

namespace openrnn::ops::gradients {

using Tensors = std::vector<Tensor>;

/// The gradient of the only output.
inline const Tensor& upstream(const GradientCall& call) { return call.output_gradients[0]; }
/// What `make` returns if the gradient of that input is used, else nothing.
template <class Make>
Tensor if_wanted(const GradientCall& call, std::size_t input, const Make& make) {
  return call.wanted[input] ? make() : Tensor();
}
inline Tensor zeros_like(const Tensor& x) {
  return Tensor(DeviceArray::zeros(x.device(), x.dtype(), x.shape()));
}
inline Tensor full_like(const Tensor& x, double value) {
  return Tensor(DeviceArray::full(x.device(), x.dtype(), x.shape(), value));
}

// ---- Operations that only gradients have, each with gradients of any order ---------------------

/// Sums over the rows of x [.., N]: [N].
Tensor column_sum(const Tensor& x);
/// factor * scalar, in each element of a tensor.
Tensor filled(const Tensor& scalar, double factor, DType dtype, const Shape& shape);
/// factor * sum of x, as reduce_sum.
Tensor scaled_sum(const char* call, const Tensor& x, double factor);
/// factor / 2 times the sum of squares of x.
Tensor l2_norm_loss(const Tensor& x, double factor);
/// factor * scalar * x.
Tensor scaled_by(const Tensor& x, double factor, const Tensor& scalar);
/// x [.., C] summed along its last dimension, that sum in each element of [.., C].
Tensor spread_row_sums(const Tensor& x);
/// x between the bounds; with dy (empty: none) dy where x is, else 0.
DeviceArray run_clip(double low, double high, const DeviceArray& x, const DeviceArray& dy);
Tensor clip_gradient(double low, double high, const Tensor& x, const Tensor& dy);
/// dy times the derivative of `op`, of which `source` is the input, where reads_input says so, or
/// the output.
Tensor unary_gradient(UnaryOp op, const Tensor& source, const Tensor& dy);
bool reads_input(UnaryOp op);
bool reads_output(UnaryOp op);
/// The gradient of softmax(..) = y.
Tensor softmax_gradient(const Tensor& y, const Tensor& dy);
/// The gradient of the losses of rows of logits against int32 labels, `rows` being theirs; `value`
/// is it.
Tensor cross_entropy_gradient(const Tensor& logits, const Tensor& rows, const Tensor& labels,
                              DeviceArray value);
/// The rows of x that `indices` names, added up in a tensor of that shape.
Tensor scattered(const Tensor& rows, const Tensor& indices, const Shape& shape);

// ---- Gradients of operations -------------------------------------------------------------------

Tensors of_matmul(const GradientCall& call, const MatmulOptions& options);
Tensors of_dense(const GradientCall& call);
Tensors of_unary(const GradientCall& call, UnaryOp op);
Tensors of_concat(const GradientCall& call, std::int64_t axis);
Tensors of_split(const GradientCall& call, std::int64_t axis);
Tensors of_slice(const GradientCall& call, const SliceRange& range);
Tensors of_select_rows(const GradientCall& call, const std::vector<bool>& choose);

}  // namespace openrnn::ops::gradients
