#include "graph/symbolic/share.h"

#include <utility>
#include <vector>

namespace openrnn::graph {
namespace {

// Inputs of the calls that this thread is freeing, which may be the last to hold other calls.
thread_local std::vector<Tensor>* pending = nullptr;

void free_call(SymbolicCall* call) {
  std::vector<Tensor> inputs = std::move(call->inputs);
  if (pending) {
    pending->insert(pending->end(), inputs.begin(), inputs.end());
    delete call;
    return;
  }
  pending = &inputs;
  delete call;
  while (!inputs.empty()) {
    const Tensor last = std::move(inputs.back());
    inputs.pop_back();
  }
  pending = nullptr;
}

}  // namespace

std::shared_ptr<const SymbolicCall> share(SymbolicCall call) {
  return {new SymbolicCall(std::move(call)), free_call};
}

Tensor without_owner(const Tensor& tensor) {
  if (!tensor.is_symbolic() || !tensor.symbol()->owner) return tensor;
  return Tensor(
      std::make_shared<const Symbol>(Symbol{tensor.symbol()->call, tensor.symbol()->index, {}}));
}

}  // namespace openrnn::graph
