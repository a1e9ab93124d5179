#include "ops/gradients/gradients.h"

namespace openrnn::ops::gradients {
namespace {

constexpr std::array<const char*, 10> kNames{
    "relu_gradient",   "tanh_gradient",    "sigmoid_gradient",  "exp_gradient",
    "negate_gradient", "square_gradient",  "absolute_gradient", "sqrt_gradient",
    "log_gradient",    "softplus_gradient"};

// The derivative of f'(source), as a function of source.
Tensor slope_of_slope(UnaryOp op, const Tensor& source) {
  switch (op) {
    case UnaryOp::kTanh:
      return scale(source, -2.0);
    case UnaryOp::kSigmoid:
      return add_scalar(scale(source, -2.0), 1.0);
    case UnaryOp::kExp:
      return full_like(source, 1.0);
    case UnaryOp::kSquare:
      return full_like(source, 2.0);
    case UnaryOp::kSqrt:
      return divide(full_like(source, -0.5), square(source));
    case UnaryOp::kLog:
      return divide(full_like(source, -1.0), square(source));
    case UnaryOp::kSoftplus: {
      const Tensor y = sigmoid(source);
      return multiply(y, add_scalar(negate(y), 1.0));
    }
    default:  // 0 but at the kinks of relu and absolute
      return zeros_like(source);
  }
}

}  // namespace

bool reads_input(UnaryOp op) {
  return op == UnaryOp::kSquare || op == UnaryOp::kAbs || op == UnaryOp::kLog ||
         op == UnaryOp::kSoftplus;
}
bool reads_output(UnaryOp op) { return op != UnaryOp::kNegate && !reads_input(op); }

Tensor unary_gradient(UnaryOp op, const Tensor& source, const Tensor& dy) {
  DeviceArray dx = make(dy, dy.dtype(), dy.shape());
  const void* const data = source.value().data();
  dx.device().unary_gradient(op, dy.dtype(), dx.size(), reads_input(op) ? data : nullptr,
                             reads_output(op) ? data : nullptr, dy.value().data(),
                             dx.mutable_data());
  return record_composed(
      kNames[static_cast<std::size_t>(op)], {source, dy}, std::move(dx),
      [op](const GradientCall& call) {
        const Tensor &from = call.inputs[0], &gradient = call.inputs[1];
        const Tensor& w = upstream(call);
        return Tensors{
            if_wanted(call, 0,
                      [&] { return multiply(multiply(w, gradient), slope_of_slope(op, from)); }),
            if_wanted(call, 1, [&] { return unary_gradient(op, from, w); })};
      });
}

Tensors of_unary(const GradientCall& call, UnaryOp op) {
  if (op == UnaryOp::kNegate) return {negate(upstream(call))};
  return {unary_gradient(op, reads_input(op) ? call.inputs[0] : call.outputs[0], upstream(call))};
}

DeviceArray run_clip(double low, double high, const DeviceArray& x, const DeviceArray& dy) {
  DeviceArray out = make(x, x.dtype(), x.shape());
  x.device().clip({.dtype = x.dtype(),
                   .size = x.size(),
                   .low = low,
                   .high = high,
                   .x = x.data(),
                   .dy = dy.data(),
                   .out = out.mutable_data()});
  return out;
}

Tensor clip_gradient(double low, double high, const Tensor& x, const Tensor& dy) {
  return record_composed("clip_gradient", {x, dy}, run_clip(low, high, x.value(), dy.value()),
                         [low, high](const GradientCall& call) {
                           const Tensor& from = call.inputs[0];
                           return Tensors{if_wanted(call, 0, [&] { return zeros_like(from); }),
                                          if_wanted(call, 1, [&] {
                                            return clip_gradient(low, high, from, upstream(call));
                                          })};
                         });
}

Tensor column_sum(const Tensor& x) {
  const Matrix size = as_rows("column_sum", "x", x);
  DeviceArray sums = make(x, x.dtype(), {size.cols});
  sums.device().column_sum(x.dtype(), size.rows, size.cols, x.value().data(), sums.mutable_data());
  return record_composed("column_sum", {x}, std::move(sums), [](const GradientCall& call) {
    return Tensors{add_row(zeros_like(call.inputs[0]), upstream(call))};
  });
}

Tensor filled(const Tensor& scalar, double factor, DType dtype, const Shape& shape) {
  DeviceArray all = make(scalar, dtype, shape);
  all.device().fill(dtype, all.size(), factor, scalar.dtype(), scalar.value().data(),
                    all.mutable_data());
  return record_composed("fill", {scalar}, std::move(all), [factor](const GradientCall& call) {
    return Tensors{cast(scaled_sum("reduce_sum", upstream(call), factor), call.inputs[0].dtype())};
  });
}

Tensor spread_row_sums(const Tensor& x) {
  const Matrix size = as_rows("spread_row_sums", "x", x);
  const DType wide = wide_dtype(x.dtype());
  const auto ones = [&](const Shape& shape) {
    return Tensor(DeviceArray::full(x.device(), wide, shape, 1.0));
  };
  const Tensor rows = reshape(cast(x, wide), {size.rows, size.cols});
  const Tensor sums = matmul(matmul(rows, ones({size.cols, 1})), ones({1, size.cols}));
  return cast(reshape(sums, x.shape()), x.dtype());
}

Tensor softmax_gradient(const Tensor& y, const Tensor& dy) {
  const Matrix size = as_rows("softmax", "logits", y);
  DeviceArray dx = make(dy, dy.dtype(), dy.shape());
  dx.device().softmax_gradient(dy.dtype(), size.rows, size.cols, y.value().data(),
                               dy.value().data(), dx.mutable_data());
  return record_composed("softmax_gradient", {y, dy}, std::move(dx), [](const GradientCall& call) {
    const Tensor &p = call.inputs[0], &dp = call.inputs[1], &w = upstream(call);
    // dx = p * (dp - <p, dp>)
    const auto to_p = [&] {
      return subtract(multiply(w, subtract(dp, spread_row_sums(multiply(p, dp)))),
                      multiply(dp, spread_row_sums(multiply(p, w))));
    };
    return Tensors{if_wanted(call, 0, to_p),
                   if_wanted(call, 1, [&] { return softmax_gradient(p, w); })};
  });
}

}  // namespace openrnn::ops::gradients
