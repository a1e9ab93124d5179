// How recorded calls are shared.
#pragma once

#include <memory>

#include "openrnn/graph_symbolic.h"

namespace openrnn::graph {

/// Shares a call. Freeing the last of a long chain of calls does not recurse.
std::shared_ptr<const SymbolicCall> share(SymbolicCall call);

}  // namespace openrnn::graph
