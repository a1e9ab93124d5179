// How recorded calls are shared.
#pragma once

#include <memory>

#include "openrnn/graph_symbolic.h"

namespace openrnn::graph {

/// Shares a call. Freeing the last of a long chain of calls does not recurse.
std::shared_ptr<const SymbolicCall> share(SymbolicCall call);

/// The same tensor, which does not keep the layer that made it alive.
Tensor without_owner(const Tensor& tensor);

}  // namespace openrnn::graph
