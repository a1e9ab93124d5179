#include "ops/gradients/gradients.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
using gradients::scaled_sum;

Tensor reduce_sum(const Tensor& x) {
  if (x.is_symbolic()) return defer_one("reduce_sum", infer::scalar("reduce_sum", x), x);
  return scaled_sum("reduce_sum", x, 1.0);
}

Tensor reduce_mean(const Tensor& x) {
  require_floating("reduce_mean", "x", x);
  if (x.is_symbolic()) {
    return defer_one("reduce_mean", infer::scalar("reduce_mean", x), x);
  }
  const std::int64_t size = x.value().size();
  return scaled_sum("reduce_mean", x, size ? 1.0 / static_cast<double>(size) : 0.0);
}

Tensor l1_regularization(const Tensor& x, double factor) {
  if (x.is_symbolic()) {
    return defer_one("l1_regularization", infer::scalar("l1_regularization", x), x, factor);
  }
  return scaled_sum("l1_regularization", absolute(x), factor);
}

Tensor l2_regularization(const Tensor& x, double factor) {
  require_floating("l2_regularization", "x", x);
  if (x.is_symbolic()) {
    return defer_one("l2_regularization", infer::scalar("l2_regularization", x), x, factor);
  }
  return gradients::l2_norm_loss(x, factor);
}

}  // namespace openrnn::ops
