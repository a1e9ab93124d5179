#include "ops/tensor/product.h"

#include "ops/gradients/gradients.h"
#include "ops/tensor/strides.h"

namespace openrnn::ops {
namespace {

using gradients::if_wanted;
using gradients::upstream;

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

Shape with_matrix(Shape lead, std::int64_t rows, std::int64_t cols) {
  lead.insert(lead.end(), {rows, cols});
  return lead;
}

std::byte* matrix(const void* data, std::int64_t index, std::int64_t size, DType dtype) {
  return static_cast<std::byte*>(const_cast<void*>(data)) +
         static_cast<std::size_t>(index * size) * dtype_size(dtype);
}

// Both have the same leading dimensions.
Tensor product(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const std::size_t rank = a.shape().size(), ta = options.transpose_a, tb = options.transpose_b;
  const std::int64_t m = a.shape()[rank - 2 + ta], k = a.shape()[rank - 1 - ta],
                     n = b.shape()[rank - 1 - tb];
  DeviceArray c = make(a, a.dtype(), with_matrix(leading(a.shape()), m, n));
  const std::int64_t count = shape_size(leading(a.shape()));
  for (std::int64_t i = 0; i < count; ++i) {
    c.device().matmul({.dtype = c.dtype(),
                       .m = m,
                       .n = n,
                       .k = k,
                       .a = matrix(a.value().data(), i, m * k, c.dtype()),
                       .b = matrix(b.value().data(), i, k * n, c.dtype()),
                       .c = matrix(c.data(), i, m * n, c.dtype()),
                       .transpose_a = options.transpose_a,
                       .transpose_b = options.transpose_b});
  }
  return record_composed("matmul", {a, b}, std::move(c), [options](const GradientCall& call) {
    const Tensor &left = call.inputs[0], &right = call.inputs[1], &dc = upstream(call);
    const bool of_a = options.transpose_a, of_b = options.transpose_b;
    const auto to_a = [&] {
      return of_a ? product(right, dc, {.transpose_a = of_b, .transpose_b = true})
                  : product(dc, right, {.transpose_b = !of_b});
    };
    const auto to_b = [&] {
      return of_b ? product(dc, left, {.transpose_a = true, .transpose_b = of_a})
                  : product(left, dc, {.transpose_a = !of_a});
    };
    return std::vector{if_wanted(call, 0, to_a), if_wanted(call, 1, to_b)};
  });
}

}  // namespace

Shape matmul_shape(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  require_floating("matmul", "a", a);
  require_floating("matmul", "b", b);
  if (a.dtype() != b.dtype()) {
    throw ArgumentError(
        message("[matmul] b is ", dtype_name(b.dtype()), ", expected ", dtype_name(a.dtype())));
  }
  for (const Tensor* const operand : {&a, &b}) {
    if (operand->shape().size() >= 2) continue;
    throw ArgumentError(message("[matmul] ", operand == &a ? "a" : "b", " has shape ",
                                to_string(operand->shape()), ", expected at least 2 dimensions"));
  }
  const std::size_t ta = options.transpose_a, tb = options.transpose_b;
  const auto back = [](const Tensor& x, std::size_t i) { return x.shape()[x.shape().size() - i]; };
  if (!dims_fit(back(a, 1 + ta), back(b, 2 - tb))) {
    throw ArgumentError(message("[matmul] b has shape ", to_string(b.shape()), ", expected ",
                                back(a, 1 + ta), " at dimension ", b.shape().size() - 2 + tb,
                                " for a of shape ", to_string(a.shape())));
  }
  return with_matrix(broadcast_shape("matmul", leading(a.shape()), leading(b.shape())),
                     back(a, 2 - ta), back(b, 1 + tb));
}

Tensor matmul_stacks(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const Shape lead = leading(matmul_shape(a, b, options));
  const auto spread = [&lead](const Tensor& x) {
    const std::size_t rank = x.shape().size();
    return broadcast_to(x, with_matrix(lead, x.shape()[rank - 2], x.shape()[rank - 1]));
  };
  return product(spread(a), spread(b), options);
}

}  // namespace openrnn::ops
