// How recorded calls are shared.
#pragma once

#include <memory>

#include "openrnn/graph_symbolic.h"

namespace openrnn::graph {

/// Records a call in the current graph; `layer`, which may be null, made it. Its inputs keep no
/// layer alive; its outputs, which are returned, do. Freeing the last of a long chain of calls does
/// not recurse.
std::vector<Tensor> record_call(SymbolicCall call, std::shared_ptr<const Layer> layer = nullptr);

/// For a variable's read, which would keep the current value, a symbolic read; else the tensor.
Tensor as_read(const Tensor& input);
/// The same tensor, which keeps no layer alive.
Tensor without_owner(const Tensor& tensor);
std::vector<Tensor> without_owners(std::vector<Tensor> tensors);

/// Owner of `layer`, which may be null, and of the layers that compute `inputs`.
std::shared_ptr<const void> owner_of(std::shared_ptr<const Layer> layer,
                                     const std::vector<Tensor>& inputs);
/// The outputs of a call.
std::vector<Tensor> outputs_of(const std::shared_ptr<const SymbolicCall>& call,
                               const std::shared_ptr<const void>& owner);

}  // namespace openrnn::graph
