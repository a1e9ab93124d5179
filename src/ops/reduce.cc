#include "openrnn/ops.h"
#include "ops/support.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

// factor * sum of the elements, rounded once; every element's gradient is factor times upstream.
Tensor scaled_sum(const char* call, const Tensor& x, double factor) {
  require_floating(call, "x", x);
  const DeviceArray& value = x.value();
  const Device& device = value.device();
  const DType dtype = x.dtype();
  const double total = device.sum(dtype, value.size(), value.data());
  return record_one(call, {x}, make_scalar(device, wide_dtype(dtype), factor * total),
                    [factor, dtype, shape = x.shape()](const DeviceArray& dy) {
                      DeviceArray dx = make(dy, dtype, shape);
                      dy.device().fill(dtype, dx.size(), factor, dy.dtype(), dy.data(),
                                       dx.mutable_data());
                      return std::vector{dx};
                    });
}

}  // namespace

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
  const DeviceArray& value = x.value();
  const Device& device = value.device();
  const double squares = device.sum_of_squares(x.dtype(), value.size(), value.data());
  return record_one("l2_regularization", {x},
                    make_scalar(device, wide_dtype(x.dtype()), 0.5 * factor * squares),
                    [factor, value](const DeviceArray& dy) {
                      const double upstream = element(dy.to_host().view(), 0);
                      DeviceArray dx = make(dy, value.dtype(), value.shape());
                      dy.device().scale(value.dtype(), value.size(), factor * upstream,
                                        value.data(), dx.mutable_data());
                      return std::vector{dx};
                    });
}

}  // namespace openrnn::ops
