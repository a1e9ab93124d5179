#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"
#include "ops/tensor/integers.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

using gradients::if_wanted;
using gradients::reads_input;
using gradients::reads_output;
using gradients::run_clip;
using gradients::upstream;
using per_sample::same_places;
using Tensors = std::vector<Tensor>;

DeviceArray run_binary(BinaryOp op, const DeviceArray& a, const DeviceArray& b) {
  DeviceArray c = make(a, a.dtype(), a.shape());
  a.device().binary(op, a.dtype(), a.size(), a.data(), b.data(), c.mutable_data());
  return c;
}

DeviceArray run_scale(double factor, const DeviceArray& x) {
  DeviceArray y = make(x, x.dtype(), x.shape());
  x.device().scale(x.dtype(), x.size(), factor, x.data(), y.mutable_data());
  return y;
}

DeviceArray run_convert(const DeviceArray& x, DType dtype) {
  DeviceArray y = make(x, dtype, x.shape());
  x.device().convert(x.size(), x.dtype(), x.data(), dtype, y.mutable_data());
  return y;
}

Tensor defer_binary(const char* call, const Tensor& a, const Tensor& b) {
  return defer_one(call, infer::broadcast(call, a, b), a, b);
}

Tensor unary(const char* call, UnaryOp op, const Tensor& x) {
  require_floating(call, "x", x);
  if (x.is_symbolic()) return defer_one(call, infer::like(call, x), x);
  DeviceArray y = make(x, x.dtype(), x.shape());
  const Device& device = y.device();
  device.unary(op, x.dtype(), y.size(), x.value().data(), y.mutable_data());
  const DeviceArray kept = reads_output(op) ? y : reads_input(op) ? x.value() : DeviceArray();
  return record_one(
      call, {x}, std::move(y),
      [op, kept](const DeviceArray& dy) {
        DeviceArray dx = make(dy, dy.dtype(), dy.shape());
        dy.device().unary_gradient(
            op, dy.dtype(), dy.size(), reads_input(op) ? kept.data() : nullptr,
            reads_output(op) ? kept.data() : nullptr, dy.data(), dx.mutable_data());
        return std::vector<DeviceArray>{dx};
      },
      [op](const GradientCall& made) { return gradients::of_unary(made, op); }, same_places);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  if (any_symbolic(a, b)) return defer_binary("add", a, b);
  if (apart(a, b)) return std::apply(add, together("add", a, b));
  if (a.shape() != b.shape()) return std::apply(add, broadcast_both("add", a, b));
  require_same("add", a, b);
  return record_one(
      "add", {a, b}, run_binary(BinaryOp::kAdd, a.value(), b.value()),
      [](const DeviceArray& dc) {
        return std::vector{dc, dc};
      },
      [](const GradientCall& call) {
        return Tensors{upstream(call), upstream(call)};
      },
      same_places);
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  if (any_symbolic(a, b)) return defer_binary("subtract", a, b);
  if (apart(a, b)) return std::apply(subtract, together("subtract", a, b));
  if (a.shape() != b.shape()) return std::apply(subtract, broadcast_both("subtract", a, b));
  require_same("subtract", a, b);
  const bool want_b = b.tracked();
  return record_one(
      "subtract", {a, b}, run_binary(BinaryOp::kSubtract, a.value(), b.value()),
      [want_b](const DeviceArray& dc) {
        return std::vector{dc, want_b ? run_scale(-1.0, dc) : DeviceArray()};
      },
      [](const GradientCall& call) {
        return Tensors{upstream(call),
                       if_wanted(call, 1, [&] { return scale(upstream(call), -1.0); })};
      },
      same_places);
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  if (any_symbolic(a, b)) return defer_binary("multiply", a, b);
  if (apart(a, b)) return std::apply(multiply, together("multiply", a, b));
  if (a.shape() != b.shape()) return std::apply(multiply, broadcast_both("multiply", a, b));
  require_same("multiply", a, b);
  const bool want_a = a.tracked(), want_b = b.tracked();
  return record_one(
      "multiply", {a, b}, run_binary(BinaryOp::kMultiply, a.value(), b.value()),
      [want_a, want_b, a = a.value(), b = b.value()](const DeviceArray& dc) {
        std::vector<DeviceArray> gradients(2);
        if (want_a) gradients[0] = run_binary(BinaryOp::kMultiply, dc, b);
        if (want_b) gradients[1] = run_binary(BinaryOp::kMultiply, dc, a);
        return gradients;
      },
      [](const GradientCall& call) {
        const Tensor& dc = upstream(call);
        return Tensors{if_wanted(call, 0, [&] { return multiply(dc, call.inputs[1]); }),
                       if_wanted(call, 1, [&] { return multiply(dc, call.inputs[0]); })};
      },
      same_places);
}

Tensor divide(const Tensor& a, const Tensor& b) {
  if (any_symbolic(a, b)) return defer_binary("divide", a, b);
  if (apart(a, b)) return std::apply(divide, together("divide", a, b));
  if (a.shape() != b.shape()) return std::apply(divide, broadcast_both("divide", a, b));
  require_same("divide", a, b);
  const bool want_b = b.tracked();
  DeviceArray c = run_binary(BinaryOp::kDivide, a.value(), b.value());
  return record_one(
      "divide", {a, b}, c,
      [want_b, b = b.value(), c](const DeviceArray& dc) {
        std::vector<DeviceArray> gradients(2);
        gradients[0] = run_binary(BinaryOp::kDivide, dc, b);
        if (want_b) {
          gradients[1] = run_scale(-1.0, run_binary(BinaryOp::kMultiply, gradients[0], c));
        }
        return gradients;
      },
      [](const GradientCall& call) {
        const Tensor to_a = divide(upstream(call), call.inputs[1]);
        return Tensors{
            to_a, if_wanted(call, 1, [&] { return scale(multiply(to_a, call.outputs[0]), -1.0); })};
      },
      same_places);
}

Tensor add_n(const std::vector<Tensor>& terms) {
  if (terms.empty()) throw ArgumentError("[add_n] no terms, expected at least one");
  Tensor sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) sum = add(sum, terms[i]);
  return sum;
}

Tensor add_row(const Tensor& x, const Tensor& row) {
  if (any_symbolic(x, row)) {
    return defer_one("add_row", infer::add_row(x, row), x, row);
  }
  if (apart(x, row)) return std::apply(add_row, together("add_row", x, row));
  require_floating("add_row", "x", x);
  require_same_kind("add_row", "row", x, row);
  const Matrix size = as_rows("add_row", "x", x);
  if (row.shape() != Shape{size.cols}) {
    throw ArgumentError(message("[add_row] row has shape ", to_string(row.shape()), ", expected [",
                                size.cols, "]"));
  }
  DeviceArray y = make(x, x.dtype(), x.shape());
  y.device().add_row(x.dtype(), size.rows, size.cols, x.value().data(), row.value().data(),
                     y.mutable_data());
  const bool want_row = row.tracked();
  return record_one(
      "add_row", {x, row}, std::move(y),
      [size, want_row](const DeviceArray& dy) {
        std::vector<DeviceArray> gradients{dy, DeviceArray()};
        if (want_row) {
          gradients[1] = make(dy, dy.dtype(), {size.cols});
          dy.device().column_sum(dy.dtype(), size.rows, size.cols, dy.data(),
                                 gradients[1].mutable_data());
        }
        return gradients;
      },
      [](const GradientCall& call) {
        return Tensors{upstream(call),
                       if_wanted(call, 1, [&] { return gradients::column_sum(upstream(call)); })};
      },
      [size, want_row](const Node&, const RowCall& call) {
        per_sample::require_apart("add_row", call.views[0], size.cols);
        const DeviceArray& dy = call.output_gradients[0];
        std::vector<RowGradient> found(2);
        found[0] = {.gradient = dy, .view = call.views[0], .shared = {}};
        if (want_row) {
          found[1].shared = per_sample::column_sums(call.shared[1], {dy, call.views[0], size.cols});
        }
        return found;
      });
}

Tensor add_scalar(const Tensor& x, double term) {
  require_floating("add_scalar", "x", x);
  if (x.is_symbolic()) {
    return defer_one("add_scalar", infer::like("add_scalar", x), x, term);
  }
  DeviceArray y = make(x, x.dtype(), x.shape());
  const Device& device = y.device();
  device.fill(y.dtype(), y.size(), term, y.dtype(), nullptr, y.mutable_data());
  device.accumulate(y.dtype(), y.size(), x.value().data(), y.mutable_data());
  return record_one(
      "add_scalar", {x}, std::move(y), [](const DeviceArray& dy) { return std::vector{dy}; },
      [](const GradientCall& call) { return Tensors{upstream(call)}; }, same_places);
}

Tensor scale(const Tensor& x, double factor) {
  require_floating("scale", "x", x);
  if (x.is_symbolic()) {
    return defer_one("scale", infer::like("scale", x), x, factor);
  }
  return record_one(
      "scale", {x}, run_scale(factor, x.value()),
      [factor](const DeviceArray& dy) { return std::vector{run_scale(factor, dy)}; },
      [factor](const GradientCall& call) { return Tensors{scale(upstream(call), factor)}; },
      same_places);
}

Tensor clip(const Tensor& x, double low, double high) {
  require_floating("clip", "x", x);
  if (!(low <= high)) {
    throw ArgumentError(
        message("[clip] low is ", low, " and high ", high, ", expected low at most high"));
  }
  if (x.is_symbolic()) return defer_one("clip", infer::like("clip", x), x, low, high);
  return record_one(
      "clip", {x}, run_clip(low, high, x.value(), {}),
      [low, high, x = x.value()](const DeviceArray& dy) {
        return std::vector{run_clip(low, high, x, dy)};
      },
      [low, high](const GradientCall& call) {
        return Tensors{gradients::clip_gradient(low, high, call.inputs[0], upstream(call))};
      },
      same_places);
}

Tensor relu(const Tensor& x) { return unary("relu", UnaryOp::kRelu, x); }
Tensor tanh(const Tensor& x) { return unary("tanh", UnaryOp::kTanh, x); }
Tensor sigmoid(const Tensor& x) { return unary("sigmoid", UnaryOp::kSigmoid, x); }
Tensor exp(const Tensor& x) { return unary("exp", UnaryOp::kExp, x); }
Tensor negate(const Tensor& x) { return unary("negate", UnaryOp::kNegate, x); }
Tensor square(const Tensor& x) { return unary("square", UnaryOp::kSquare, x); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", UnaryOp::kSqrt, x); }
Tensor absolute(const Tensor& x) { return unary("absolute", UnaryOp::kAbs, x); }
Tensor log(const Tensor& x) { return unary("log", UnaryOp::kLog, x); }
Tensor softplus(const Tensor& x) { return unary("softplus", UnaryOp::kSoftplus, x); }

Tensor cast(const Tensor& x, DType dtype) {
  if (x.empty()) throw ArgumentError("[cast] x is empty, expected a tensor");
  if (x.is_symbolic()) {
    return defer_one("cast", {dtype, x.shape()}, x, dtype);
  }
  if (!is_floating(x.dtype()) || !is_floating(dtype)) return cast_on_host(x, dtype);
  return record_one(
      "cast", {x}, run_convert(x.value(), dtype),
      [from = x.dtype()](const DeviceArray& dy) { return std::vector{run_convert(dy, from)}; },
      [](const GradientCall& call) {
        return Tensors{cast(upstream(call), call.inputs[0].dtype())};
      },
      same_places);
}

}  // namespace openrnn::ops
