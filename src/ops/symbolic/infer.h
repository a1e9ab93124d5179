// Dtypes and shapes of results when an operand is symbolic; -1 is a dimension not known yet. Throws
// ArgumentError where known sizes do not fit; unknown ones are checked when there are values.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "ops/symbolic/shapes.h"

namespace openrnn::ops::infer {

/// As x, which must be floating.
TensorSpec like(std::string_view call, const Tensor& x);
/// Of two of the same dtype and shape.
TensorSpec same(std::string_view call, const Tensor& a, const Tensor& b);
/// Of two of the same dtype whose shapes broadcast.
TensorSpec broadcast(std::string_view call, const Tensor& a, const Tensor& b);
/// A scalar of the dtype of sums.
TensorSpec scalar(std::string_view call, const Tensor& x);
TensorSpec add_row(const Tensor& x, const Tensor& row);
TensorSpec matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b);
TensorSpec dense(const Tensor& x, const Tensor& kernel, const Tensor& bias);
TensorSpec reshape(const Tensor& x, const Shape& shape);
TensorSpec concat(const std::vector<Tensor>& parts, std::int64_t axis);
TensorSpec stack(const std::vector<Tensor>& parts);
std::vector<TensorSpec> split(const Tensor& x, std::int64_t axis,
                              const std::vector<std::int64_t>& sizes);
TensorSpec slice(const Tensor& x, std::int64_t axis, std::int64_t begin, std::int64_t size);
TensorSpec transpose_leading(const Tensor& x);
TensorSpec lookup(std::string_view call, DType dtype, const Tensor& indices, std::int64_t width);
/// Losses of rows of logits [.., C] against labels [..]; the shape of the labels.
TensorSpec losses(std::string_view call, const Tensor& logits, const Tensor& labels);

}  // namespace openrnn::ops::infer
