#include "ops/gradients/gradients.h"

namespace openrnn::ops::gradients {
namespace {

Tensor zeros_of(const Tensor& like, DType dtype, Shape shape) {
  return Tensor(DeviceArray::zeros(like.device(), dtype, std::move(shape)));
}

std::int64_t size_along(const Tensor& x, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(x.shape().size());
  return x.shape()[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
}

// Zeros in the shape of x but for `size` along the axis.
Tensor zeros_along(const Tensor& x, std::int64_t axis, std::int64_t size) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size())
                                          : axis)] = size;
  return zeros_of(x, x.dtype(), std::move(shape));
}

}  // namespace

Tensors of_concat(const GradientCall& call, std::int64_t axis) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& part : call.inputs) sizes.push_back(size_along(part, axis));
  return split(upstream(call), axis, sizes);
}

Tensors of_split(const GradientCall& call, std::int64_t axis) {
  Tensors parts;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& dy = call.output_gradients[i];
    parts.push_back(dy.empty() ? zeros_like(call.outputs[i]) : dy);
  }
  return {concat(parts, axis)};
}

Tensors of_slice(const GradientCall& call, const SliceRange& range) {
  const Tensor& x = call.inputs[0];
  const std::int64_t steps = size_along(x, range.axis);
  return {concat({zeros_along(x, range.axis, range.begin), upstream(call),
                  zeros_along(x, range.axis, steps - range.begin - range.size)},
                 range.axis)};
}

Tensors of_select_rows(const GradientCall& call, const std::vector<bool>& choose) {
  const Tensor& dy = upstream(call);
  const Tensor none = zeros_like(dy);
  return {if_wanted(call, 0, [&] { return select_rows(choose, dy, none); }),
          if_wanted(call, 1, [&] { return select_rows(choose, none, dy); })};
}

Tensor scattered(const Tensor& rows, const Tensor& indices, const Shape& shape) {
  DeviceArray sums = DeviceArray::zeros(rows.device(), rows.dtype(), shape);
  sums.device().scatter_add_rows(
      rows.dtype(), indices.value().size(), shape[1], rows.value().data(),
      static_cast<const std::int32_t*>(indices.value().data()), sums.mutable_data());
  return record_composed("embedding_lookup_gradient", {rows}, std::move(sums),
                         [indices](const GradientCall& call) {
                           return Tensors{embedding_lookup(upstream(call), indices)};
                         });
}

}  // namespace openrnn::ops::gradients
