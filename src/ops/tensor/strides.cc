#include "ops/tensor/strides.h"

#include <algorithm>

#include "ops/gradients/gradients.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

using gradients::upstream;

// The bytes from the start of an array to that element.
std::ptrdiff_t bytes_to(const DeviceArray& x, std::int64_t element) {
  return element * static_cast<std::ptrdiff_t>(dtype_size(x.dtype()));
}

// dy at the places of the view in an array of zeros.
DeviceArray run_scatter(const DeviceArray& dy, const ElementView& view, const Shape& shape) {
  DeviceArray dx = DeviceArray::zeros(dy.device(), dy.dtype(), shape);
  if (dy.size() == 0) return dx;
  dy.device().copy_strided(
      {.element = dtype_size(dy.dtype()),
       .shape = view.shape,
       .from = dy.data(),
       .from_strides = ElementView::of(view.shape).strides,
       .to = static_cast<std::byte*>(dx.mutable_data()) + bytes_to(dx, view.offset),
       .to_strides = view.strides});
  return dx;
}

Tensor scattered(const Tensor& dy, const ElementView& view, const Shape& shape) {
  return record_one(
      "view_gradient", {dy}, run_scatter(dy.value(), view, shape),
      [view](const DeviceArray& dx) { return std::vector{elements_of(dx, view)}; },
      [view](const GradientCall& call) {
        return std::vector{viewed("view", upstream(call), view)};
      });
}

bool broadcasts(const Shape& from, const Shape& to) {
  bool good = from.size() <= to.size();
  const std::size_t more = good ? to.size() - from.size() : 0;
  for (std::size_t i = 0; good && i < from.size(); ++i) {
    good = from[i] == 1 || dims_fit(from[i], to[more + i]);
  }
  return good;
}

}  // namespace

ElementView ElementView::of(const Shape& shape) {
  ElementView view{.shape = shape, .strides = std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t i = shape.size(); i-- > 1;) view.strides[i - 1] = view.strides[i] * shape[i];
  return view;
}

ElementView ElementView::permuted(const std::vector<std::size_t>& perm) const {
  ElementView view{.shape = ops::permuted(shape, perm), .strides = {}, .offset = offset};
  for (const std::size_t axis : perm) view.strides.push_back(strides[axis]);
  return view;
}

ElementView ElementView::broadcast(const Shape& to) const {
  ElementView view{
      .shape = to, .strides = std::vector<std::int64_t>(to.size(), 0), .offset = offset};
  const std::size_t more = to.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) view.strides[more + i] = strides[i];
  }
  return view;
}

DeviceArray elements_of(const DeviceArray& x, const ElementView& view) {
  DeviceArray y = make(x, x.dtype(), view.shape);
  if (y.size() == 0) return y;
  x.device().copy_strided(
      {.element = dtype_size(x.dtype()),
       .shape = view.shape,
       .from = static_cast<const std::byte*>(x.data()) + bytes_to(x, view.offset),
       .from_strides = view.strides,
       .to = y.mutable_data(),
       .to_strides = ElementView::of(view.shape).strides});
  return y;
}

DeviceArray run_broadcast(const DeviceArray& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.size() == shape_size(shape)) return x.reshaped(shape);
  return elements_of(x, ElementView::of(x.shape()).broadcast(shape));
}

DeviceArray reduced_first(const DeviceArray& x, const std::vector<bool>& reduced) {
  std::vector<std::size_t> perm;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) continue;
    perm.push_back(i);
    rows *= x.shape()[i];
  }
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) perm.push_back(i);
  }
  const ElementView view = ElementView::of(x.shape()).permuted(perm);
  std::int64_t cols = 1;
  for (std::size_t i = 0; i < reduced.size(); ++i) cols *= reduced[i] ? 1 : x.shape()[i];
  const Shape matrix{rows, cols};
  // Dimensions of size 1 lie wherever they are said to.
  const StridedCopy plan = collapsed({.element = 1,
                                      .shape = view.shape,
                                      .from_strides = view.strides,
                                      .to_strides = ElementView::of(view.shape).strides});
  if (plan.shape.size() == 1 && plan.from_strides[0] == 1) return x.reshaped(matrix);
  return elements_of(x, view).reshaped(matrix);
}

DeviceArray run_sum_to(const DeviceArray& x, const Shape& shape) {
  if (x.size() == shape_size(shape)) return x.reshaped(shape);
  if (shape_size(shape) == 1) return summed(x, {.out_dtype = x.dtype()}).reshaped(shape);
  const std::size_t more = x.shape().size() - shape.size();
  std::vector<bool> reduced(x.shape().size(), true);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    reduced[more + i] = shape[i] == 1 && x.shape()[more + i] != 1;
  }
  const DeviceArray rows = reduced_first(x, reduced);
  DeviceArray sums = make(x, x.dtype(), shape);
  x.device().column_sum(x.dtype(), rows.shape()[0], rows.shape()[1], rows.data(),
                        sums.mutable_data());
  return sums;
}

Tensor viewed(const char* call, const Tensor& x, const ElementView& view) {
  return record_one(
      call, {x}, elements_of(x.value(), view),
      [view, shape = x.shape()](const DeviceArray& dy) {
        return std::vector{run_scatter(dy, view, shape)};
      },
      [view](const GradientCall& made) {
        return std::vector{scattered(upstream(made), view, made.inputs[0].shape())};
      });
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.empty()) throw ArgumentError("[broadcast_to] x is empty, expected a tensor");
  if (!broadcasts(x.shape(), shape)) {
    throw ArgumentError(message("[broadcast_to] x has shape ", to_string(x.shape()),
                                ", expected one that broadcasts to ", to_string(shape)));
  }
  if (x.is_symbolic()) return defer_one("broadcast_to", {x.dtype(), shape}, x, shape);
  if (x.shape() == shape) return x;
  return record_one(
      "broadcast_to", {x}, run_broadcast(x.value(), shape),
      [from = x.shape()](const DeviceArray& dy) { return std::vector{run_sum_to(dy, from)}; },
      [](const GradientCall& call) {
        return std::vector{sum_to(upstream(call), call.inputs[0].shape())};
      });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  require_floating("sum_to", "x", x);
  if (!broadcasts(shape, x.shape())) {
    throw ArgumentError(message("[sum_to] shape is ", to_string(shape),
                                ", expected one that broadcasts to ", to_string(x.shape()),
                                " of x"));
  }
  if (x.is_symbolic()) return defer_one("sum_to", {x.dtype(), shape}, x, shape);
  if (x.shape() == shape) return x;
  return record_one(
      "sum_to", {x}, run_sum_to(x.value(), shape),
      [from = x.shape()](const DeviceArray& dy) { return std::vector{run_broadcast(dy, from)}; },
      [](const GradientCall& call) {
        return std::vector{broadcast_to(upstream(call), call.inputs[0].shape())};
      });
}

std::array<Tensor, 2> broadcast_both(const char* call, const Tensor& a, const Tensor& b) {
  require_floating(call, "a", a);
  require_same_kind(call, "b", a, b);
  const Shape shape = broadcast_shape(call, a.shape(), b.shape());
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

}  // namespace openrnn::ops
