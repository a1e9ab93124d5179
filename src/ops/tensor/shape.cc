// Transposes, slices and lookups along an axis.
#include <algorithm>

#include "ops/gradients/gradients.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

void require_value(const char* call, const Tensor& x) {
  if (x.empty()) throw ArgumentError(message("[", call, "] x is empty, expected a tensor"));
}

Shape sliced_shape(const Tensor& x, std::size_t along, const StepRange& range) {
  Shape shape = x.shape();
  // Of an axis whose size is not known the whole is known to be one.
  const bool whole = !range.begin && !range.end && (range.step == 1 || range.step == -1);
  if (shape[along] >= 0) {
    shape[along] = steps_of(range.begin, range.end, range.step, shape[along]).count;
  } else if (!whole) {
    shape[along] = -1;
  }
  return shape;
}

}  // namespace

Tensor transpose(const Tensor& x, const std::vector<std::int64_t>& perm) {
  require_value("transpose", x);
  const std::vector<std::size_t> order = permutation("transpose", perm, x.shape().size());
  if (x.is_symbolic())
    return defer_one("transpose", {x.dtype(), permuted(x.shape(), order)}, x, perm);
  return viewed("transpose", x, ElementView::of(x.shape()).permuted(order));
}

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples) {
  require_value("tile", x);
  const std::size_t rank = x.shape().size();
  if (multiples.size() != rank ||
      std::any_of(multiples.begin(), multiples.end(), [](std::int64_t m) { return m < 0; })) {
    throw ArgumentError(message("[tile] multiples are ", to_string(multiples), ", expected ", rank,
                                " of 0 or above, one an axis"));
  }
  Shape shape, apart, repeated;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = x.shape()[i];
    shape.push_back(size < 0 ? -1 : size * multiples[i]);
    apart.insert(apart.end(), {1, size});
    repeated.insert(repeated.end(), {multiples[i], size});
  }
  if (x.is_symbolic()) return defer_one("tile", {x.dtype(), shape}, x, multiples);
  return reshape(broadcast_to(reshape(x, apart), repeated), shape);
}

Tensor expand_dims(const Tensor& x, std::int64_t axis) {
  require_value("expand_dims", x);
  Shape shape = x.shape();
  const std::size_t at = axis_of("expand_dims", axis, shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
  if (x.is_symbolic()) return defer_one("expand_dims", {x.dtype(), shape}, x, axis);
  return reshape(x, shape);
}

Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes) {
  require_value("squeeze", x);
  std::vector<bool> gone = chosen_axes("squeeze", axes, x.shape().size());
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const std::int64_t size = x.shape()[i];
    if (axes.empty()) gone[i] = size == 1;
    const bool good = axes.empty() ? size >= 0 : !gone[i] || dims_fit(size, 1);
    if (good) continue;
    throw ArgumentError(message("[squeeze] x has shape ", to_string(x.shape()),
                                axes.empty() ? ", expected sizes that are known, or axes"
                                             : message(", expected 1 along axis ", i)));
  }
  const Shape shape = reduced_shape(x.shape(), gone, false);
  if (x.is_symbolic()) return defer_one("squeeze", {x.dtype(), shape}, x, axes);
  return reshape(x, shape);
}

Tensor strided_slice(const Tensor& x, const StepRange& range) {
  require_value("strided_slice", x);
  const std::size_t along = axis_of("strided_slice", range.axis, x.shape().size());
  if (range.step == 0) throw ArgumentError("[strided_slice] step is 0, expected another");
  const Shape shape = sliced_shape(x, along, range);
  if (x.is_symbolic()) return defer_one("strided_slice", {x.dtype(), shape}, x, range);
  if (shape == x.shape() && range.step == 1) return x;
  ElementView view = ElementView::of(x.shape());
  const Steps steps = steps_of(range.begin, range.end, range.step, x.shape()[along]);
  view.offset = steps.count > 0 ? steps.first * view.strides[along] : 0;
  view.strides[along] *= range.step;
  view.shape = shape;
  return viewed("strided_slice", x, view);
}

Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  require_value("gather", x);
  const std::size_t rank = x.shape().size(), along = axis_of("gather", axis, rank);
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(along));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(along) + 1,
               x.shape().end());
  if (any_symbolic(x, indices)) return defer_one("gather", {x.dtype(), shape}, x, indices, axis);
  require_floating("gather", "x", x);
  require_indices("gather", "indices", indices, 0, x.shape()[along]);
  // A table of rows along the axis, and back.
  const std::vector<std::size_t> front = to_front(along, rank);
  const Shape moved = permuted(x.shape(), front);
  const Tensor ahead = along == 0 ? x : transpose(x, as_axes(front));
  const std::int64_t cols = span_size(moved, 1, moved.size());
  const Tensor rows = embedding_lookup(reshape(ahead, {moved[0], cols}),
                                       Tensor(indices.value().reshaped({indices.value().size()})));
  if (along == 0) return reshape(rows, shape);
  Shape found{indices.value().size()};
  found.insert(found.end(), moved.begin() + 1, moved.end());
  return reshape(transpose(reshape(rows, found), inverse(front)), shape);
}

}  // namespace openrnn::ops
