// Products of stacks of matrices.
#pragma once

#include "openrnn/ops.h"

namespace openrnn::ops {

/// op(a) [.., M, K] times op(b) [.., K, N], whose leading dimensions broadcast: [.., M, N].
Tensor matmul_stacks(const Tensor& a, const Tensor& b, const MatmulOptions& options);
/// Its shape, of which -1 may be a part. Throws: ArgumentError.
Shape matmul_shape(const Tensor& a, const Tensor& b, const MatmulOptions& options);

}  // namespace openrnn::ops
