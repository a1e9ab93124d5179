// Reductions along axes: sums of Device::column_sum, maxima by halves.
#include <cmath>

#include "ops/gradients/gradients.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

using gradients::upstream;
using Tensors = std::vector<Tensor>;

struct Reduced {
  std::vector<bool> chosen;
  Shape kept, shape;  // with dimensions of 1, and as the options say

  Reduced(const char* call, const Tensor& x, const ReduceOptions& options)
      : chosen(chosen_axes(call, options.axes, x.shape().size())),
        kept(reduced_shape(x.shape(), chosen, true)),
        shape(reduced_shape(x.shape(), chosen, options.keepdims)) {
    require_floating(call, "x", x);
  }
  // How many elements of x there are for one of the result.
  std::int64_t count(const Tensor& x) const {
    std::int64_t found = 1;
    for (std::size_t i = 0; i < chosen.size(); ++i) found *= chosen[i] ? x.shape()[i] : 1;
    return found;
  }
};

Tensor widened(const Tensor& x) {
  const DType wide = wide_dtype(x.dtype());
  return x.dtype() == wide ? x : cast(x, wide);
}

// The axes, dimensions kept, so that the result broadcasts with x.
ReduceOptions keeping(const ReduceOptions& options) {
  return {.axes = options.axes, .keepdims = true};
}

Tensor mean_of(const Tensor& sum, std::int64_t count) {
  return scale(sum, count > 0 ? 1.0 / static_cast<double>(count) : 0.0);
}

// The best of each column of [R, C], by halves: of a maximum no order changes the result.
DeviceArray run_extreme(BinaryOp op, const DeviceArray& matrix, Shape shape) {
  std::int64_t rows = matrix.shape()[0];
  const std::int64_t cols = matrix.shape()[1];
  const std::size_t row_bytes = static_cast<std::size_t>(cols) * dtype_size(matrix.dtype());
  DeviceArray best = matrix;
  best.make_unique_owner();
  auto* const data = static_cast<std::byte*>(best.mutable_data());
  while (rows > 1) {
    const std::int64_t half = rows / 2;
    rows -= half;
    best.device().binary(op, best.dtype(), half * cols, data,
                         data + static_cast<std::size_t>(rows) * row_bytes, data);
  }
  DeviceArray result = make(matrix, matrix.dtype(), std::move(shape));
  if (result.size() > 0) {
    result.device().copy({.count = 1,
                          .bytes = row_bytes,
                          .from = best.data(),
                          .from_stride = 0,
                          .to = result.mutable_data(),
                          .to_stride = 0});
  }
  return result;
}

// The gradient is shared by the elements that are equal to the result.
Tensor extreme(const char* call, BinaryOp op, const Tensor& x, const ReduceOptions& options) {
  const Reduced to(call, x, options);
  if (x.is_symbolic()) return defer_one(call, {x.dtype(), to.shape}, x, options);
  if (to.count(x) == 0 && shape_size(to.shape) > 0) {
    throw ArgumentError(message("[", call, "] x has shape ", to_string(x.shape()),
                                ", expected at least one element for each result"));
  }
  DeviceArray y = run_extreme(op, reduced_first(x.value(), to.chosen), to.shape);
  return record_composed(call, {x}, std::move(y), [kept = to.kept](const GradientCall& made) {
    const Tensor& from = made.inputs[0];
    const Tensor best = broadcast_to(reshape(made.outputs[0], kept), from.shape());
    const Tensor none = gradients::zeros_like(from);
    const Tensor mask = equal(from, best);
    const Tensor ones = where(mask, gradients::full_like(from, 1.0), none);
    const Tensor share = divide(reshape(upstream(made), kept), sum_to(ones, kept));
    return Tensors{where(mask, broadcast_to(share, from.shape()), none)};
  });
}

}  // namespace

Tensor reduce_sum(const Tensor& x, const ReduceOptions& options) {
  const Reduced to("reduce_sum", x, options);
  if (x.is_symbolic()) {
    return defer_one("reduce_sum_along", {wide_dtype(x.dtype()), to.shape}, x, options);
  }
  if (!options.axes) return reshape(reduce_sum(x), to.shape);
  return reshape(sum_to(widened(x), to.kept), to.shape);
}

Tensor reduce_mean(const Tensor& x, const ReduceOptions& options) {
  const Reduced to("reduce_mean", x, options);
  if (x.is_symbolic()) {
    return defer_one("reduce_mean_along", {wide_dtype(x.dtype()), to.shape}, x, options);
  }
  if (!options.axes) return reshape(reduce_mean(x), to.shape);
  return mean_of(reduce_sum(x, options), to.count(x));
}

Tensor reduce_max(const Tensor& x, const ReduceOptions& options) {
  return extreme("reduce_max", BinaryOp::kMaximum, x, options);
}

Tensor reduce_min(const Tensor& x, const ReduceOptions& options) {
  return extreme("reduce_min", BinaryOp::kMinimum, x, options);
}

Tensor reduce_variance(const Tensor& x, const ReduceOptions& options) {
  const Reduced to("reduce_variance", x, options);
  if (x.is_symbolic()) {
    return defer_one("reduce_variance", {wide_dtype(x.dtype()), to.shape}, x, options);
  }
  const Tensor wide = widened(x);
  return reduce_mean(square(subtract(wide, reduce_mean(wide, keeping(options)))), options);
}

Tensor reduce_std(const Tensor& x, const ReduceOptions& options) {
  return sqrt(reduce_variance(x, options));
}

Tensor reduce_logsumexp(const Tensor& x, const ReduceOptions& options) {
  const Reduced to("reduce_logsumexp", x, options);
  if (x.is_symbolic()) {
    return defer_one("reduce_logsumexp", {wide_dtype(x.dtype()), to.shape}, x, options);
  }
  const Tensor wide = widened(x);
  if (to.count(x) == 0) return log(reduce_sum(exp(wide), options));
  // An infinite maximum is not taken away: inf - inf is NaN.
  const Tensor top = reduce_max(wide.detached(), keeping(options));
  const Tensor finite =
      where(less(absolute(top), full_like(top, HUGE_VAL)), top, full_like(top, 0));
  const Tensor sum = reduce_sum(exp(subtract(wide, finite)), options);
  return add(log(sum), reshape(finite, to.shape));
}

Tensor softmax_along(const Tensor& logits, std::int64_t axis) {
  require_floating("softmax", "logits", logits);
  const std::size_t rank = logits.shape().size(), along = axis_of("softmax", axis, rank);
  if (along + 1 == rank) return softmax(logits);
  if (logits.is_symbolic()) {
    return defer_one("softmax_along", infer::like("softmax", logits), logits, axis);
  }
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < rank; ++i) last.push_back(i);
  std::swap(last[along], last[rank - 1]);
  return transpose(softmax(transpose(logits, as_axes(last))), as_axes(last));
}

Tensor log_softmax(const Tensor& logits, std::int64_t axis) {
  require_floating("log_softmax", "logits", logits);
  const std::size_t at = axis_of("log_softmax", axis, logits.shape().size());
  if (logits.is_symbolic()) {
    return defer_one("log_softmax", infer::like("log_softmax", logits), logits, axis);
  }
  if (logits.shape()[at] == 0) return logits;
  const Tensor wide = widened(logits);
  const ReduceOptions along{.axes = Axes{axis}, .keepdims = true};
  // Not x - reduce_logsumexp(x): what is near the maximum keeps its digits where that is large.
  const Tensor shifted = subtract(wide, reduce_max(wide.detached(), along));
  const Tensor result = subtract(shifted, log(reduce_sum(exp(shifted), along)));
  return logits.dtype() == wide.dtype() ? result : cast(result, logits.dtype());
}

}  // namespace openrnn::ops
