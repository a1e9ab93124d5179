#include "ops/gradients/gradients.h"

namespace openrnn::ops::gradients {

Tensor cross_entropy_gradient(const Tensor& logits, const Tensor& rows, const Tensor& labels,
                              DeviceArray value) {
  return record_composed(
      "softmax_cross_entropy_gradient", {logits, rows}, std::move(value),
      [labels](const GradientCall& call) {
        const Tensor &scores = call.inputs[0], &weights = call.inputs[1];
        const Matrix size = as_rows("softmax_cross_entropy", "logits", scores);
        const DType wide = wide_dtype(scores.dtype());
        const Shape matrix{size.rows, size.cols};
        const auto ones = [&](const Shape& shape) {
          return Tensor(DeviceArray::full(scores.device(), wide, shape, 1.0));
        };
        const Tensor hot = one_hot(reshape(labels, {size.rows}), size.cols, wide);
        const Tensor counted = spread_row_sums(hot);  // 0 where the label is below 0
        const Tensor p = softmax(cast(reshape(scores, matrix), wide));
        const Tensor w = cast(reshape(upstream(call), matrix), wide);
        // (p - hot) * counted * weights
        const auto to_logits = [&] {
          const Tensor spread = matmul(reshape(weights, {size.rows, 1}), ones({1, size.cols}));
          const Tensor found = softmax_gradient(p, multiply(multiply(w, counted), spread));
          return cast(reshape(found, scores.shape()), scores.dtype());
        };
        const auto to_rows = [&] {
          const Tensor terms = multiply(w, subtract(multiply(p, counted), hot));
          return reshape(matmul(terms, ones({size.cols, 1})), weights.shape());
        };
        return Tensors{if_wanted(call, 0, to_logits), if_wanted(call, 1, to_rows)};
      });
}

}  // namespace openrnn::ops::gradients
