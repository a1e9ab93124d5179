#include "openrnn/ops.h"
#include "ops/support/support.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

// factor * sum of the elements, rounded once; every element's gradient is factor times upstream.
Tensor scaled_sum(const char* call, const Tensor& x, double factor) {
  require_floating(call, "x", x);
  const DType dtype = x.dtype();
  return record_one(
      call, {x}, summed(x.value(), {.factor = factor, .out_dtype = wide_dtype(dtype)}),
      [factor, dtype, shape = x.shape()](const DeviceArray& dy) {
        DeviceArray dx = make(dy, dtype, shape);
        dy.device().fill(dtype, dx.size(), factor, dy.dtype(), dy.data(), dx.mutable_data());
        return std::vector{dx};
      });
}

// factor * *scalar * x, with the scalar on the device, so that nothing waits for it.
DeviceArray scaled(const DeviceArray& x, double factor, const DeviceArray& scalar) {
  const Device& device = x.device();
  DeviceArray result = make(x, x.dtype(), x.shape());
  if (!device.engine()) {
    device.scale(x.dtype(), x.size(), factor * element(scalar.host_view(), 0), x.data(),
                 result.mutable_data());
    return result;
  }
  const DType wide = wide_dtype(x.dtype());
  DeviceArray product = make(x, wide, x.shape()), widened = make(x, wide, x.shape());
  device.fill(wide, x.size(), factor, scalar.dtype(), scalar.data(), product.mutable_data());
  device.convert(x.size(), x.dtype(), x.data(), wide, widened.mutable_data());
  device.binary(BinaryOp::kMultiply, wide, x.size(), product.data(), widened.data(),
                product.mutable_data());
  device.convert(x.size(), wide, product.data(), x.dtype(), result.mutable_data());
  return result;
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
  return record_one(
      "l2_regularization", {x},
      summed(value, {.squares = true, .factor = 0.5 * factor, .out_dtype = wide_dtype(x.dtype())}),
      [factor, value](const DeviceArray& dy) { return std::vector{scaled(value, factor, dy)}; });
}

}  // namespace openrnn::ops
