#include "ops/gradients/gradients.h"

namespace openrnn::ops::gradients {

Tensors of_matmul(const GradientCall& call, const MatmulOptions& options) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], &dc = upstream(call);
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const auto to_a = [&] {
    return ta ? matmul(b, dc, {.transpose_a = tb, .transpose_b = true})
              : matmul(dc, b, {.transpose_b = !tb});
  };
  const auto to_b = [&] {
    return tb ? matmul(dc, a, {.transpose_a = true, .transpose_b = ta})
              : matmul(a, dc, {.transpose_a = !ta});
  };
  return {if_wanted(call, 0, to_a), if_wanted(call, 1, to_b)};
}

Tensors of_dense(const GradientCall& call) {
  const Tensor &x = call.inputs[0], &kernel = call.inputs[1];
  const Matrix size = as_rows("dense", "x", x);
  const Tensor dy = reshape(upstream(call), {size.rows, kernel.shape()[1]});
  const auto to_x = [&] { return reshape(matmul(dy, kernel, {.transpose_b = true}), x.shape()); };
  const auto to_kernel = [&] {
    return matmul(reshape(x, {size.rows, size.cols}), dy, {.transpose_a = true});
  };
  return {if_wanted(call, 0, to_x), if_wanted(call, 1, to_kernel),
          if_wanted(call, 2, [&] { return column_sum(dy); })};
}

}  // namespace openrnn::ops::gradients
