#include <algorithm>

#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

// The bytes of one array around an axis: `outer` blocks, each of `steps` times `inner` bytes.
struct AxisBlocks {
  std::int64_t outer = 1, steps = 1;
  std::size_t inner = 0;

  AxisBlocks(const Shape& shape, std::size_t axis, DType dtype)
      : outer(span_size(shape, 0, axis)),
        steps(shape[axis]),
        inner(static_cast<std::size_t>(span_size(shape, axis + 1, shape.size())) *
              dtype_size(dtype)) {}
  std::size_t stride() const { return static_cast<std::size_t>(steps) * inner; }
};

const std::byte* bytes_of(const DeviceArray& array) {
  return static_cast<const std::byte*>(array.data());
}
std::byte* bytes_of(DeviceArray& array) { return static_cast<std::byte*>(array.mutable_data()); }

// Steps [begin, begin + size) of `from` along the axis, as an array of their own.
DeviceArray cut(const DeviceArray& from, std::size_t axis, std::int64_t begin, std::int64_t size) {
  Shape shape = from.shape();
  shape[axis] = size;
  DeviceArray part = make(from, from.dtype(), std::move(shape));
  const AxisBlocks whole(from.shape(), axis, from.dtype());
  const std::size_t bytes = static_cast<std::size_t>(size) * whole.inner;
  from.device().copy({.count = whole.outer,
                      .bytes = bytes,
                      .from = bytes_of(from) + static_cast<std::size_t>(begin) * whole.inner,
                      .from_stride = whole.stride(),
                      .to = part.mutable_data(),
                      .to_stride = bytes});
  return part;
}

// Writes `part` at steps [begin, ..) of `to`.
void paste(const DeviceArray& part, std::size_t axis, std::int64_t begin, DeviceArray& to) {
  const AxisBlocks whole(to.shape(), axis, to.dtype());
  const AxisBlocks piece(part.shape(), axis, part.dtype());
  part.device().copy({.count = whole.outer,
                      .bytes = piece.stride(),
                      .from = part.data(),
                      .from_stride = piece.stride(),
                      .to = bytes_of(to) + static_cast<std::size_t>(begin) * whole.inner,
                      .to_stride = whole.stride()});
}

Shape resolved(const Tensor& x, Shape shape) {
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  const std::int64_t size = x.value().size();
  if (unknown != shape.end()) {
    *unknown = 1;
    const bool fits = std::find(shape.begin(), shape.end(), -1) == shape.end();
    const std::int64_t known = fits ? shape_size(shape) : 0;
    *unknown = known > 0 && size % known == 0 ? size / known : -1;
  }
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t each) { return each < 0; }) ||
      shape_size(shape) != size) {
    throw ArgumentError(message("[reshape] shape is ", to_string(shape), ", expected ", size,
                                " elements as in ", to_string(x.shape())));
  }
  return shape;
}

// Shapes of parts that differ along the axis alone.
void check_parts(const std::vector<Tensor>& parts, std::size_t axis) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    require_same_kind("concat", message("parts[", i, "]"), parts[0], parts[i]);
    Shape shape = parts[i].shape();
    if (axis < shape.size()) shape[axis] = parts[0].shape()[axis];
    if (shape != parts[0].shape()) {
      throw ArgumentError(message("[concat] parts[", i, "] has shape ", to_string(parts[i].shape()),
                                  ", expected ", to_string(parts[0].shape()), " but for dimension ",
                                  axis));
    }
  }
}

// Elements around an axis: `steps` along it, each of `inner`.
struct Around {
  std::int64_t steps = 1, inner = 1;

  Around(const Shape& shape, std::size_t axis)
      : steps(shape[axis]), inner(span_size(shape, axis + 1, shape.size())) {}
  Around of(std::int64_t other_steps) const {
    Around same = *this;
    same.steps = other_steps;
    return same;
  }
};

// The rows of a batch where the axis has `to` steps instead.
RowsView resized(const char* op, const RowsView& view, const Around& around, std::int64_t to) {
  const std::int64_t block = around.steps * around.inner, row = view.rows * view.inner;
  if (view.rows == 1) return {1, 1, block > 0 ? view.size() / block * to * around.inner : 0};
  if (block > 0 && view.inner % block == 0) {
    return {view.outer, view.rows, view.inner / around.steps * to};
  }
  if (block == 0 || row == 0 || around.inner % row != 0) per_sample::refuse_meeting(op);
  return {view.outer / around.steps * to, view.rows, view.inner};
}

// All parts have the rows of x, each as far as it goes.
std::vector<RowGradient> split_rows(const Around& around, const std::vector<std::int64_t>& sizes,
                                    const Node& node, const RowCall& call) {
  std::optional<RowsView> view;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (call.output_gradients[i].empty()) continue;
    const RowsView whole = resized("split", call.views[i], around.of(sizes[i]), around.steps);
    if (view && !(*view == whole)) per_sample::refuse_meeting("split");
    view = whole;
  }
  return per_sample::all_in(*view, node, call);
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  if (x.empty()) throw ArgumentError("[reshape] x is empty, expected a tensor");
  if (x.is_symbolic()) {
    return defer_one("reshape", infer::reshape(x, shape), x, shape);
  }
  return record_one(
      "reshape", {x}, x.value().reshaped(resolved(x, shape)),
      [from = x.shape()](const DeviceArray& dy) { return std::vector{dy.reshaped(from)}; },
      [](const GradientCall& call) {
        return std::vector{reshape(gradients::upstream(call), call.inputs[0].shape())};
      },
      per_sample::same_places);
}

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis) {
  if (parts.empty()) throw ArgumentError("[concat] no parts, expected at least one");
  if (any_symbolic(parts)) {
    return defer_one("concat", infer::concat(parts, axis), parts, axis);
  }
  if (std::any_of(parts.begin(), parts.end(),
                  [&](const Tensor& part) { return apart(parts[0], part); })) {
    std::vector<Tensor> in = parts;
    bring_together("concat", in);
    return concat(in, axis);
  }
  require_floating("concat", "parts[0]", parts[0]);
  const std::size_t along = axis_of("concat", axis, parts[0].shape().size());
  check_parts(parts, along);
  std::vector<std::int64_t> begins, sizes;
  Shape shape = parts[0].shape();
  shape[along] = 0;
  for (const Tensor& part : parts) {
    begins.push_back(shape[along]);
    sizes.push_back(part.shape()[along]);
    shape[along] += sizes.back();
  }
  const Around around(shape, along);
  DeviceArray whole = make(parts[0], parts[0].dtype(), std::move(shape));
  for (std::size_t i = 0; i < parts.size(); ++i) paste(parts[i].value(), along, begins[i], whole);
  return record_one(
      "concat", parts, std::move(whole),
      [along, begins, sizes](const DeviceArray& dy) {
        std::vector<DeviceArray> gradients;
        for (std::size_t i = 0; i < begins.size(); ++i) {
          gradients.push_back(cut(dy, along, begins[i], sizes[i]));
        }
        return gradients;
      },
      [axis](const GradientCall& call) { return gradients::of_concat(call, axis); },
      [around, sizes](const Node& node, const RowCall& call) {
        std::vector<RowGradient> found = per_sample::same_places(node, call);
        for (std::size_t i = 0; i < found.size(); ++i) {
          found[i].view = resized("concat", call.views[0], around, sizes[i]);
        }
        return found;
      });
}

std::vector<Tensor> split(const Tensor& x, std::int64_t axis,
                          const std::vector<std::int64_t>& sizes) {
  if (x.is_symbolic()) {
    return defer_call("split", infer::split(x, axis, sizes), x, axis, sizes);
  }
  require_floating("split", "x", x);
  const std::size_t along = axis_of("split", axis, x.shape().size());
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size < 0 ? x.shape()[along] + 1 : size;
  if (total != x.shape()[along]) {
    throw ArgumentError(
        message("[split] sizes are ", to_string(sizes), ", expected a sum of ", x.shape()[along]));
  }
  std::vector<DeviceArray> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(cut(x.value(), along, begin, size));
    begin += size;
  }
  return record(
      "split", {x}, std::move(parts),
      [along, sizes, dtype = x.dtype(),
       shape = x.shape()](const std::vector<DeviceArray>& gradients) {
        const auto first = std::find_if(gradients.begin(), gradients.end(),
                                        [](const auto& dy) { return !dy.empty(); });
        DeviceArray dx = DeviceArray::zeros(first->device(), dtype, shape);
        std::int64_t at = 0;
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          if (!gradients[i].empty()) paste(gradients[i], along, at, dx);
          at += sizes[i];
        }
        return std::vector{dx};
      },
      [axis](const GradientCall& call) { return gradients::of_split(call, axis); },
      [=, around = Around(x.shape(), along)](const Node& node, const RowCall& call) {
        return split_rows(around, sizes, node, call);
      });
}

Tensor slice(const Tensor& x, const SliceRange& range) {
  if (x.is_symbolic()) {
    return defer_one("slice", infer::slice(x, range.axis, range.begin, range.size), x, range);
  }
  require_floating("slice", "x", x);
  const std::size_t along = axis_of("slice", range.axis, x.shape().size());
  const std::int64_t steps = x.shape()[along];
  if (range.begin < 0 || range.size < 0 || range.begin > steps - range.size) {
    throw ArgumentError(message("[slice] begin is ", range.begin, " and size ", range.size,
                                ", expected a range within 0 to ", steps));
  }
  return record_one(
      "slice", {x}, cut(x.value(), along, range.begin, range.size),
      [=, shape = x.shape()](const DeviceArray& dy) {
        DeviceArray dx = DeviceArray::zeros(dy.device(), dy.dtype(), shape);
        paste(dy, along, range.begin, dx);
        return std::vector{dx};
      },
      [range](const GradientCall& call) { return gradients::of_slice(call, range); },
      [around = Around(x.shape(), along).of(range.size), steps](const Node& node,
                                                                const RowCall& call) {
        return per_sample::all_in(resized("slice", call.views[0], around, steps), node, call);
      });
}

Tensor stack(const std::vector<Tensor>& parts) {
  if (parts.empty()) throw ArgumentError("[stack] no parts, expected at least one");
  if (any_symbolic(parts)) return defer_one("stack", infer::stack(parts), parts);
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) {
    Shape shape = part.shape();
    shape.insert(shape.begin(), 1);
    rows.push_back(reshape(part, shape));
  }
  return concat(rows, 0);
}

std::vector<Tensor> unstack(const Tensor& x) {
  require_floating("unstack", "x", x);
  axis_of("unstack", 0, x.shape().size());
  if (x.shape()[0] < 0) {
    throw ArgumentError(message("[unstack] x has shape ", to_string(x.shape()),
                                ", expected a leading dimension that is known"));
  }
  std::vector<Tensor> parts =
      split(x, 0, std::vector<std::int64_t>(static_cast<std::size_t>(x.shape()[0]), 1));
  const Shape shape(x.shape().begin() + 1, x.shape().end());
  for (Tensor& part : parts) part = reshape(part, shape);
  return parts;
}

}  // namespace openrnn::ops
