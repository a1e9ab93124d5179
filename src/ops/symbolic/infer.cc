#include "ops/symbolic/infer.h"

#include <algorithm>

#include "ops/support/support.h"

namespace openrnn::ops::infer {
namespace {

[[noreturn]] void fail(std::string_view call, std::string_view name, const Tensor& given,
                       const std::string& expected) {
  throw ArgumentError(message("[", call, "] ", name, " is ", dtype_name(given.dtype()),
                              " of shape ", to_string(given.shape()), ", expected ", expected));
}

void require_dtype(std::string_view call, std::string_view name, const Tensor& given,
                   DType expected) {
  if (given.dtype() != expected) fail(call, name, given, std::string(dtype_name(expected)));
}

std::int64_t known(std::int64_t a, std::int64_t b) { return a < 0 ? b : a; }

std::size_t place(std::string_view call, const Tensor& x, std::int64_t axis) {
  return axis_of(call, axis, x.shape().size());
}

// The common shape of two; the axis `apart` may differ.
Shape merged(std::string_view call, const Tensor& a, const Tensor& b, std::size_t apart) {
  Shape shape = a.shape();
  bool good = shape.size() == b.shape().size();
  for (std::size_t i = 0; good && i < shape.size(); ++i) {
    if (i == apart) continue;
    good = dims_fit(shape[i], b.shape()[i]);
    shape[i] = known(shape[i], b.shape()[i]);
  }
  if (!good) fail(call, "b", b, "the shape " + to_string(a.shape()) + " of a");
  return shape;
}

constexpr std::size_t kNoAxis = static_cast<std::size_t>(-1);

}  // namespace

TensorSpec like(std::string_view call, const Tensor& x) {
  require_floating(call, "x", x);
  return {x.dtype(), x.shape()};
}

TensorSpec same(std::string_view call, const Tensor& a, const Tensor& b) {
  require_floating(call, "a", a);
  require_dtype(call, "b", b, a.dtype());
  return {a.dtype(), merged(call, a, b, kNoAxis)};
}

TensorSpec broadcast(std::string_view call, const Tensor& a, const Tensor& b) {
  require_floating(call, "a", a);
  require_dtype(call, "b", b, a.dtype());
  return {a.dtype(), broadcast_shape(call, a.shape(), b.shape())};
}

TensorSpec scalar(std::string_view call, const Tensor& x) {
  require_floating(call, "x", x);
  return {wide_dtype(x.dtype()), {}};
}

TensorSpec add_row(const Tensor& x, const Tensor& row) {
  require_floating("add_row", "x", x);
  require_dtype("add_row", "row", row, x.dtype());
  if (x.shape().empty() || row.shape().size() != 1 || !dims_fit(x.shape().back(), row.shape()[0])) {
    fail("add_row", "row", row, "one dimension, the last of " + to_string(x.shape()));
  }
  return {x.dtype(), x.shape()};
}

TensorSpec matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  require_floating("matmul", "a", a);
  require_dtype("matmul", "b", b, a.dtype());
  if (a.shape().size() != 2) fail("matmul", "a", a, "2 dimensions");
  if (b.shape().size() != 2) fail("matmul", "b", b, "2 dimensions");
  const std::size_t ta = transpose_a, tb = transpose_b;
  if (!dims_fit(a.shape()[1 - ta], b.shape()[tb])) {
    fail("matmul", "b", b, message(a.shape()[1 - ta], " at dimension ", tb));
  }
  return {a.dtype(), {a.shape()[ta], b.shape()[1 - tb]}};
}

TensorSpec dense(const Tensor& x, const Tensor& kernel, const Tensor& bias) {
  require_floating("dense", "x", x);
  require_dtype("dense", "kernel", kernel, x.dtype());
  if (x.shape().empty() || kernel.shape().size() != 2 ||
      !dims_fit(x.shape().back(), kernel.shape()[0])) {
    fail("dense", "kernel", kernel, "[I, N] for x [.., I] of shape " + to_string(x.shape()));
  }
  if (!bias.empty() && (bias.dtype() != x.dtype() || bias.shape().size() != 1 ||
                        !dims_fit(bias.shape()[0], kernel.shape()[1]))) {
    fail("dense", "bias", bias, message("[", kernel.shape()[1], "]"));
  }
  Shape shape = x.shape();
  shape.back() = kernel.shape()[1];
  return {x.dtype(), std::move(shape)};
}

TensorSpec reshape(const Tensor& x, const Shape& shape) {
  const auto open = [](std::int64_t size) { return size < 0; };
  const bool known_size = std::none_of(x.shape().begin(), x.shape().end(), open);
  if (std::count_if(shape.begin(), shape.end(), open) > 1) {
    throw ArgumentError(
        message("[reshape] shape is ", to_string(shape), ", expected at most one dimension of -1"));
  }
  Shape result = shape;
  if (!known_size) return {x.dtype(), std::move(result)};
  const std::int64_t size = shape_size(x.shape());
  std::int64_t rest = 1;
  for (const std::int64_t each : shape) rest *= each < 0 ? 1 : each;
  const auto unknown = std::find_if(result.begin(), result.end(), open);
  const bool good = unknown == result.end() ? rest == size : rest > 0 && size % rest == 0;
  if (!good) fail("reshape", "x", x, "as many elements as " + to_string(shape));
  if (unknown != result.end()) *unknown = size / rest;
  return {x.dtype(), std::move(result)};
}

TensorSpec concat(const std::vector<Tensor>& parts, std::int64_t axis) {
  require_floating("concat", "parts[0]", parts.at(0));
  const std::size_t along = place("concat", parts[0], axis);
  Shape shape = parts[0].shape();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    require_dtype("concat", message("parts[", i, "]"), parts[i], parts[0].dtype());
    const Shape merged_shape = merged("concat", parts[0], parts[i], along);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != along) shape[d] = known(shape[d], merged_shape[d]);
    }
    const std::int64_t more = parts[i].shape()[along];
    shape[along] = shape[along] < 0 || more < 0 ? -1 : shape[along] + more;
  }
  return {parts[0].dtype(), std::move(shape)};
}

TensorSpec stack(const std::vector<Tensor>& parts) {
  TensorSpec spec = like("stack", parts.at(0));
  for (const Tensor& part : parts) {
    const Shape shape = same("stack", parts[0], part).shape;
    for (std::size_t d = 0; d < shape.size(); ++d) spec.shape[d] = known(spec.shape[d], shape[d]);
  }
  spec.shape.insert(spec.shape.begin(), static_cast<std::int64_t>(parts.size()));
  return spec;
}

std::vector<TensorSpec> split(const Tensor& x, std::int64_t axis,
                              const std::vector<std::int64_t>& sizes) {
  require_floating("split", "x", x);
  const std::size_t along = place("split", x, axis);
  std::vector<TensorSpec> specs;
  std::int64_t total = 0;
  bool good = true;
  for (const std::int64_t size : sizes) {
    Shape shape = x.shape();
    shape[along] = size;
    total += size;
    good = good && size >= 0;
    specs.push_back({x.dtype(), std::move(shape)});
  }
  if (!good || !dims_fit(x.shape()[along], total)) {
    throw ArgumentError(
        message("[split] sizes are ", to_string(sizes), ", expected a sum of ", x.shape()[along]));
  }
  return specs;
}

TensorSpec slice(const Tensor& x, std::int64_t axis, std::int64_t begin, std::int64_t size) {
  require_floating("slice", "x", x);
  const std::size_t along = place("slice", x, axis);
  const std::int64_t steps = x.shape()[along];
  if (begin < 0 || size < 0 || (steps >= 0 && begin > steps - size)) {
    throw ArgumentError(message("[slice] begin is ", begin, " and size ", size,
                                ", expected a range within 0 to ", steps));
  }
  Shape shape = x.shape();
  shape[along] = size;
  return {x.dtype(), std::move(shape)};
}

TensorSpec transpose_leading(const Tensor& x) {
  require_floating("transpose_leading", "x", x);
  if (x.shape().size() < 2) fail("transpose_leading", "x", x, "at least 2 dimensions");
  Shape shape = x.shape();
  std::swap(shape[0], shape[1]);
  return {x.dtype(), std::move(shape)};
}

TensorSpec lookup(std::string_view call, DType dtype, const Tensor& indices, std::int64_t width) {
  require_dtype(call, "indices", indices, DType::kInt32);
  Shape shape = indices.shape();
  shape.push_back(width);
  return {dtype, std::move(shape)};
}

TensorSpec losses(std::string_view call, const Tensor& logits, const Tensor& labels) {
  require_floating(call, "logits", logits);
  require_dtype(call, "labels", labels, DType::kInt32);
  const Shape& shape = logits.shape();
  bool good = shape.size() == labels.shape().size() + 1;
  for (std::size_t i = 0; good && i + 1 < shape.size(); ++i) {
    good = dims_fit(shape[i], labels.shape()[i]);
  }
  if (!good) fail(call, "labels", labels, "the shape of the rows of " + to_string(shape));
  return {wide_dtype(logits.dtype()), labels.shape()};
}

}  // namespace openrnn::ops::infer
