// Maxima, powers, comparisons and choices of operands that broadcast.
#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"
#include "ops/tensor/integers.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

using gradients::if_wanted;
using gradients::upstream;
using Tensors = std::vector<Tensor>;
using TwoOperands = Tensor (*)(const Tensor&, const Tensor&);

DeviceArray run(BinaryOp op, const Tensor& a, const Tensor& b) {
  DeviceArray c = make(a, a.dtype(), a.shape());
  c.device().binary(op, a.dtype(), c.size(), a.value().data(), b.value().data(), c.mutable_data());
  return c;
}

// What all binary operations do before they compute; nothing where they may.
std::optional<Tensor> before(const char* call, TwoOperands again, const Tensor& a,
                             const Tensor& b) {
  if (any_symbolic(a, b)) return defer_one(call, infer::broadcast(call, a, b), a, b);
  if (apart(a, b)) return std::apply(again, together(call, a, b));
  if (a.shape() != b.shape()) return std::apply(again, broadcast_both(call, a, b));
  require_same(call, a, b);
  return std::nullopt;
}

// The gradient flows to a where `chosen` holds, else to b.
Tensor extreme(const char* call, BinaryOp op, TwoOperands chosen, const Tensor& a,
               const Tensor& b) {
  return record_composed(
      call, {a, b}, run(op, a, b),
      [chosen](const GradientCall& made) {
        const Tensor& dc = upstream(made);
        const Tensor mask = chosen(made.inputs[0], made.inputs[1]);
        const Tensor none = gradients::zeros_like(dc);
        return Tensors{if_wanted(made, 0, [&] { return where(mask, dc, none); }),
                       if_wanted(made, 1, [&] { return where(mask, none, dc); })};
      },
      per_sample::same_places);
}

Tensor of_power(const Tensor& a, const Tensor& b, const Tensor& dc) {
  // 0 where b is, of an infinite a^(b - 1) too.
  const Tensor none = gradients::zeros_like(b);
  const Tensor slope = multiply(b, power(a, add_scalar(b, -1.0)));
  return multiply(dc, where(equal(b, none), none, slope));
}

// Of a and b, or of b and a where `mirrored` names the recorded call of those.
struct Comparison {
  const char* call;
  CompareOp op;
  TwoOperands again;
  const char* mirrored = nullptr;
};

Tensor compare(const Comparison& of, const Tensor& a, const Tensor& b) {
  const char* const call = of.call;
  const Tensor &left = of.mirrored ? b : a, &right = of.mirrored ? a : b;
  if (any_symbolic(a, b)) {
    if (a.dtype() != b.dtype()) {
      throw ArgumentError(message("[", call, "] b is ", dtype_name(b.dtype()), ", expected ",
                                  dtype_name(a.dtype())));
    }
    const Shape shape = broadcast_shape(call, a.shape(), b.shape());
    return defer_one(of.mirrored ? of.mirrored : call, {DType::kBool, shape}, left, right);
  }
  if (!a.empty() && !b.empty() && a.dtype() == b.dtype() && !is_floating(a.dtype())) {
    broadcast_shape(call, a.shape(), b.shape());
    return compare_integers(call, of.op, left, right);
  }
  if (apart(a, b)) return std::apply(of.again, together(call, a, b));
  if (a.shape() != b.shape()) return std::apply(of.again, broadcast_both(call, a, b));
  require_same(call, a, b);
  DeviceArray mask = make(a, DType::kBool, a.shape());
  mask.device().compare(of.op, a.dtype(), mask.size(), left.value().data(), right.value().data(),
                        static_cast<std::uint8_t*>(mask.mutable_data()));
  return record("compare", {left.detached(), right.detached()}, {std::move(mask)}, {})[0];
}

// The elements that are chosen from a and b; an empty one: 0.
DeviceArray run_select(const DeviceArray& mask, const DeviceArray& a, const DeviceArray& b) {
  const DeviceArray& like = a.empty() ? b : a;
  DeviceArray out = make(like, like.dtype(), like.shape());
  like.device().select({.element = dtype_size(like.dtype()),
                        .size = out.size(),
                        .mask = static_cast<const std::uint8_t*>(mask.data()),
                        .a = a.data(),
                        .b = b.data(),
                        .out = out.mutable_data()});
  return out;
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  if (auto done = before("maximum", maximum, a, b)) return *done;
  return extreme("maximum", BinaryOp::kMaximum, greater_equal, a, b);
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  if (auto done = before("minimum", minimum, a, b)) return *done;
  return extreme("minimum", BinaryOp::kMinimum, less_equal, a, b);
}

Tensor clip_between(const Tensor& x, const Tensor& low, const Tensor& high) {
  return minimum(maximum(x, low), high);
}

Tensor power(const Tensor& a, const Tensor& b) {
  if (auto done = before("power", power, a, b)) return *done;
  return record_composed(
      "power", {a, b}, run(BinaryOp::kPower, a, b),
      [](const GradientCall& call) {
        const Tensor &base = call.inputs[0], &exponent = call.inputs[1], &dc = upstream(call);
        const auto to_exponent = [&] {
          const Tensor none = gradients::zeros_like(base);
          const Tensor positive = greater(base, none);
          // The logarithm is not asked for where it has no slope to give.
          const Tensor safe = where(positive, base, gradients::full_like(base, 1.0));
          return multiply(dc, where(positive, multiply(call.outputs[0], log(safe)), none));
        };
        return Tensors{if_wanted(call, 0, [&] { return of_power(base, exponent, dc); }),
                       if_wanted(call, 1, to_exponent)};
      },
      per_sample::same_places);
}

Tensor equal(const Tensor& a, const Tensor& b) {
  return compare({"equal", CompareOp::kEqual, equal}, a, b);
}
Tensor less(const Tensor& a, const Tensor& b) {
  return compare({"less", CompareOp::kLess, less}, a, b);
}
Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compare({"less_equal", CompareOp::kLessEqual, less_equal}, a, b);
}
Tensor greater(const Tensor& a, const Tensor& b) {
  return compare({"greater", CompareOp::kLess, greater, "less"}, a, b);
}
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compare({"greater_equal", CompareOp::kLessEqual, greater_equal, "less_equal"}, a, b);
}
Tensor not_equal(const Tensor& a, const Tensor& b) { return logical_not(equal(a, b)); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (any_symbolic(condition, a, b)) {
    TensorSpec spec = infer::broadcast("where", a, b);
    spec.shape = broadcast_shape("where", condition.shape(), spec.shape);
    return defer_one("where", std::move(spec), condition, a, b);
  }
  if (apart(a, b)) {
    const std::array<Tensor, 2> in = together("where", a, b);
    return where(condition, in[0], in[1]);
  }
  const auto [left, right] = broadcast_both("where", a, b);
  const Shape shape = broadcast_shape("where", condition.shape(), left.shape());
  if (shape != left.shape()) {
    return where(condition, broadcast_to(left, shape), broadcast_to(right, shape));
  }
  const DeviceArray mask =
      run_broadcast(on_device(truth_of("where", condition), a.value().device()), shape);
  const bool want_a = left.tracked(), want_b = right.tracked();
  return record_one(
      "where", {left, right}, run_select(mask, left.value(), right.value()),
      [=](const DeviceArray& dc) {
        return std::vector{want_a ? run_select(mask, dc, {}) : DeviceArray(),
                           want_b ? run_select(mask, {}, dc) : DeviceArray()};
      },
      [mask = Tensor(mask)](const GradientCall& call) {
        const Tensor& dc = upstream(call);
        const Tensor none = gradients::zeros_like(dc);
        return Tensors{if_wanted(call, 0, [&] { return where(mask, dc, none); }),
                       if_wanted(call, 1, [&] { return where(mask, none, dc); })};
      },
      per_sample::same_places);
}

Tensor full_like(const Tensor& x, double value) {
  require_floating("full_like", "x", x);
  if (x.is_symbolic()) return defer_one("full_like", infer::like("full_like", x), x, value);
  return record("full_like", {x.detached()},
                {DeviceArray::full(x.value().device(), x.dtype(), x.shape(), value)}, {})[0];
}

}  // namespace openrnn::ops
