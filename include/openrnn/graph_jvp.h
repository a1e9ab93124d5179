// Products with Jacobians and Hessians, by tapes inside tapes.
#pragma once

#include "openrnn/graph.h"

namespace openrnn {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Values of a function, and how they change along a direction.
struct Jvp {
  std::vector<Tensor> outputs;
  std::vector<Tensor> tangents;  // as outputs
};
/// function(primals) and its Jacobian times `tangents`, by the gradient of its gradient: for u of
/// the outputs' shapes, d/du of (tangents . J^T u). An output that does not depend on the primals
/// has a tangent of 0. Open tapes record both. Throws: ArgumentError unless each tangent has the
/// dtype and the shape of its primal; UnsupportedError naming an operation without a second
/// derivative.
OPENRNN_API Jvp jvp(const TensorFunction& function, const std::vector<Tensor>& primals,
                    const std::vector<Tensor>& tangents);

/// The Hessian of function(primals), one element, times `vectors`: one tensor a primal, 0 where the
/// function is linear in it. Throws: as jvp, and ArgumentError for a value of more elements.
OPENRNN_API std::vector<Tensor> hvp(
    const std::function<Tensor(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& primals, const std::vector<Tensor>& vectors);

}  // namespace openrnn
