#include "ops/tensor/product.h"

#include "ops/gradients/gradients.h"
#include "ops/per_sample/rows.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {
namespace {

DeviceArray run_matmul(const DeviceArray& like, Shape shape, MatmulArgs args) {
  DeviceArray result = make(like, like.dtype(), std::move(shape));
  args.dtype = like.dtype();
  args.c = result.mutable_data();
  like.device().matmul(args);
  return result;
}

void require_matrix(std::string_view name, const Tensor& tensor) {
  require_floating("matmul", name, tensor);
  if (tensor.shape().size() == 2) return;
  throw ArgumentError(message("[matmul] ", name, " has shape ", to_string(tensor.shape()),
                              ", expected 2 dimensions"));
}

// Sizes of c[m, n] = op(a)[m, k] op(b)[k, n].
struct Sizes {
  std::int64_t m, n, k;
};

DeviceArray gradient_of_a(const Sizes& size, const MatmulOptions& options, const DeviceArray& b,
                          const DeviceArray& dc) {
  if (options.transpose_a) {
    return run_matmul(dc, {size.k, size.m},
                      {.m = size.k,
                       .n = size.m,
                       .k = size.n,
                       .a = b.data(),
                       .b = dc.data(),
                       .transpose_a = options.transpose_b,
                       .transpose_b = true});
  }
  return run_matmul(dc, {size.m, size.k},
                    {.m = size.m,
                     .n = size.k,
                     .k = size.n,
                     .a = dc.data(),
                     .b = b.data(),
                     .transpose_b = !options.transpose_b});
}

DeviceArray gradient_of_b(const Sizes& size, const MatmulOptions& options, const DeviceArray& a,
                          const DeviceArray& dc) {
  if (options.transpose_b) {
    return run_matmul(dc, {size.n, size.k},
                      {.m = size.n,
                       .n = size.k,
                       .k = size.m,
                       .a = dc.data(),
                       .b = a.data(),
                       .transpose_a = true,
                       .transpose_b = options.transpose_a});
  }
  return run_matmul(dc, {size.k, size.n},
                    {.m = size.k,
                     .n = size.n,
                     .k = size.m,
                     .a = a.data(),
                     .b = dc.data(),
                     .transpose_a = !options.transpose_a});
}

void check_dense(const Tensor& x, const Tensor& kernel, const Tensor& bias) {
  require_floating("dense", "x", x);
  require_same_kind("dense", "kernel", x, kernel);
  const Matrix rows = as_rows("dense", "x", x);
  if (kernel.shape().size() != 2 || kernel.shape()[0] != rows.cols) {
    throw ArgumentError(message("[dense] kernel has shape ", to_string(kernel.shape()),
                                ", expected [", rows.cols, ", N] for x of shape ",
                                to_string(x.shape())));
  }
  if (bias.empty()) return;
  require_same_kind("dense", "bias", x, bias);
  if (bias.shape() != Shape{kernel.shape()[1]}) {
    throw ArgumentError(message("[dense] bias has shape ", to_string(bias.shape()), ", expected [",
                                kernel.shape()[1], "]"));
  }
}

DeviceArray bias_gradient(const Sizes& size, const DeviceArray& dy) {
  DeviceArray gradient = make(dy, dy.dtype(), {size.n});
  dy.device().column_sum(dy.dtype(), size.m, size.n, dy.data(), gradient.mutable_data());
  return gradient;
}

// Rows of the batch among those of the product, not among its columns.
std::vector<RowGradient> matmul_rows(const Sizes& size, const MatmulOptions& options,
                                     const DeviceArray& a, const DeviceArray& b,
                                     const RowCall& call) {
  const RowsView& view = call.views[0];
  if (options.transpose_a) {
    throw UnsupportedError("[per_sample] 'matmul' with transpose_a, expected it without");
  }
  per_sample::require_apart("matmul", view, size.n);
  const DeviceArray& dc = call.output_gradients[0];
  const RowsView rows_of_a = per_sample::with_columns(view, size.n, size.k);
  std::vector<RowGradient> found(2);
  if (call.wanted[0]) {
    found[0] = {.gradient = gradient_of_a(size, options, b, dc), .view = rows_of_a, .shared = {}};
  }
  if (call.wanted[1]) {
    found[1].shared = per_sample::product(call.shared[1], {a, rows_of_a, size.k},
                                          {dc, view, size.n}, options.transpose_b);
  }
  return found;
}

// What the gradient of a dense layer reads.
struct DenseCall {
  Sizes size;
  Shape x_shape;
  DeviceArray x, kernel;
};

std::vector<RowGradient> dense_rows(const DenseCall& layer, const RowCall& call) {
  const Sizes& size = layer.size;
  per_sample::require_apart("dense", call.views[0], size.n);
  const per_sample::Places dy{call.output_gradients[0], call.views[0], size.n};
  const RowsView rows_of_x = per_sample::with_columns(dy.view, size.n, size.k);
  std::vector<RowGradient> found(3);
  if (call.wanted[0]) {
    found[0] = {
        .gradient = gradient_of_a(size, {}, layer.kernel, dy.values).reshaped(layer.x_shape),
        .view = rows_of_x,
        .shared = {}};
  }
  if (call.wanted[1]) {
    found[1].shared = per_sample::product(call.shared[1], {layer.x, rows_of_x, size.k}, dy);
  }
  if (call.wanted[2]) found[2].shared = per_sample::column_sums(call.shared[2], dy);
  return found;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const bool stacks = a.shape().size() > 2 || b.shape().size() > 2;
  if (any_symbolic(a, b)) {
    TensorSpec made = stacks ? TensorSpec{a.dtype(), matmul_shape(a, b, options)}
                             : infer::matmul(a, b, options.transpose_a, options.transpose_b);
    return defer_one("matmul", std::move(made), a, b, options);
  }
  if (apart(a, b)) {
    const std::array<Tensor, 2> in = together("matmul", a, b);
    return matmul(in[0], in[1], options);
  }
  if (stacks) return matmul_stacks(a, b, options);
  require_matrix("a", a);
  require_matrix("b", b);
  require_same_kind("matmul", "b", a, b);
  const std::size_t ta = options.transpose_a, tb = options.transpose_b;
  const Sizes size{a.shape()[ta], b.shape()[1 - tb], a.shape()[1 - ta]};
  if (b.shape()[tb] != size.k) {
    throw ArgumentError(message("[matmul] b has shape ", to_string(b.shape()), ", expected ",
                                size.k, " at dimension ", tb, " for a of shape ",
                                to_string(a.shape())));
  }
  DeviceArray c = run_matmul(a.value(), {size.m, size.n},
                             {.m = size.m,
                              .n = size.n,
                              .k = size.k,
                              .a = a.value().data(),
                              .b = b.value().data(),
                              .transpose_a = options.transpose_a,
                              .transpose_b = options.transpose_b});
  const bool want_a = a.tracked(), want_b = b.tracked();
  const DeviceArray kept_a = want_b ? a.value() : DeviceArray();
  const DeviceArray kept_b = want_a ? b.value() : DeviceArray();
  return record_one(
      "matmul", {a, b}, std::move(c),
      [=, a = kept_a, b = kept_b](const DeviceArray& dc) {
        std::vector<DeviceArray> gradients(2);
        if (want_a) gradients[0] = gradient_of_a(size, options, b, dc);
        if (want_b) gradients[1] = gradient_of_b(size, options, a, dc);
        return gradients;
      },
      [options](const GradientCall& call) { return gradients::of_matmul(call, options); },
      [=](const Node&, const RowCall& call) {
        return matmul_rows(size, options, kept_a, kept_b, call);
      });
}

Tensor dense(const Tensor& x, const Tensor& kernel, const Tensor& bias) {
  if (any_symbolic(x, kernel, bias)) {
    return defer_one("dense", infer::dense(x, kernel, bias), x, kernel, bias);
  }
  if (apart(x, kernel, bias)) return std::apply(dense, together("dense", x, kernel, bias));
  check_dense(x, kernel, bias);
  const Matrix rows = as_rows("dense", "x", x);
  const Sizes size{rows.rows, kernel.shape()[1], rows.cols};
  Shape shape = x.shape();
  shape.back() = size.n;
  DeviceArray y = run_matmul(x.value(), shape,
                             {.m = size.m,
                              .n = size.n,
                              .k = size.k,
                              .a = x.value().data(),
                              .b = kernel.value().data(),
                              .bias = bias.empty() ? nullptr : bias.value().data()});
  const bool want_x = x.tracked(), want_kernel = kernel.tracked(), want_bias = bias.tracked();
  const DenseCall kept{size, x.shape(), want_kernel ? x.value() : DeviceArray(),
                       want_x ? kernel.value() : DeviceArray()};
  return record_one(
      "dense", {x, kernel, bias}, std::move(y),
      [=](const DeviceArray& dy) {
        std::vector<DeviceArray> gradients(3);
        if (want_x) gradients[0] = gradient_of_a(size, {}, kept.kernel, dy).reshaped(kept.x_shape);
        if (want_kernel) gradients[1] = gradient_of_b(size, {}, kept.x, dy);
        if (want_bias) gradients[2] = bias_gradient(size, dy);
        return gradients;
      },
      gradients::of_dense,
      [kept](const Node&, const RowCall& call) { return dense_rows(kept, call); });
}

}  // namespace openrnn::ops
