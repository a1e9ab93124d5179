#include "ops/gradients/gradients.h"

namespace openrnn::ops::gradients {
namespace {

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

// Rounded once; every element's gradient is factor times upstream.
Tensor scaled_sum(const char* call, const Tensor& x, double factor) {
  require_floating(call, "x", x);
  const DType dtype = x.dtype();
  return record_one(
      call, {x}, summed(x.value(), {.factor = factor, .out_dtype = wide_dtype(dtype)}),
      [factor, dtype, shape = x.shape()](const DeviceArray& dy) {
        DeviceArray dx = make(dy, dtype, shape);
        dy.device().fill(dtype, dx.size(), factor, dy.dtype(), dy.data(), dx.mutable_data());
        return std::vector{dx};
      },
      [factor](const GradientCall& made) {
        return Tensors{
            filled(upstream(made), factor, made.inputs[0].dtype(), made.inputs[0].shape())};
      });
}

Tensor scaled_by(const Tensor& x, double factor, const Tensor& scalar) {
  return record_composed(
      "l2_regularization_gradient", {x, scalar}, scaled(x.value(), factor, scalar.value()),
      [factor](const GradientCall& call) {
        const Tensor &from = call.inputs[0], &by = call.inputs[1], &w = upstream(call);
        return Tensors{if_wanted(call, 0, [&] { return scaled_by(w, factor, by); }),
                       if_wanted(call, 1, [&] {
                         return scaled_sum("reduce_sum", multiply(w, from), factor);
                       })};
      });
}

Tensor l2_norm_loss(const Tensor& x, double factor) {
  const DeviceArray& value = x.value();
  return record_one(
      "l2_regularization", {x},
      summed(value, {.squares = true, .factor = 0.5 * factor, .out_dtype = wide_dtype(x.dtype())}),
      [factor, value](const DeviceArray& dy) { return std::vector{scaled(value, factor, dy)}; },
      [factor](const GradientCall& call) {
        return Tensors{scaled_by(call.inputs[0], factor, upstream(call))};
      });
}

}  // namespace openrnn::ops::gradients
