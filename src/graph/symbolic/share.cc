#include "graph/symbolic/share.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "openrnn/graph_layer.h"

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

Tensor as_read(const Tensor& input) {
  if (input.is_symbolic() || input.leaf_id() == 0) return input;
  const std::vector<Variable>& variables = Graph::current().variables();
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const Variable& each) {
    return each.leaf_id() == input.leaf_id();
  });
  return found == variables.end() ? input : defer_read(*found);
}

std::vector<Tensor> record_call(SymbolicCall call, std::shared_ptr<const Layer> layer) {
  const std::shared_ptr<const void> owner = owner_of(std::move(layer), call.inputs);
  for (Tensor& input : call.inputs) input = without_owner(as_read(input));
  call.graph = &Graph::current();
  call.graph_id = call.graph->id();
  return outputs_of({new SymbolicCall(std::move(call)), free_call}, owner);
}

Tensor without_owner(const Tensor& tensor) {
  if (!tensor.is_symbolic() || !tensor.symbol()->owner) return tensor;
  return Tensor(
      std::make_shared<const Symbol>(Symbol{tensor.symbol()->call, tensor.symbol()->index, {}}));
}

std::vector<Tensor> without_owners(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor = without_owner(tensor);
  return tensors;
}

std::shared_ptr<const void> owner_of(std::shared_ptr<const Layer> layer,
                                     const std::vector<Tensor>& inputs) {
  struct Kept {
    std::shared_ptr<const Layer> layer;
    std::vector<std::shared_ptr<const void>> behind;
  };
  std::vector<std::shared_ptr<const void>> behind;
  for (const Tensor& input : inputs) {
    if (!input.is_symbolic() || !input.symbol()->owner) continue;
    const std::shared_ptr<const void>& owner = input.symbol()->owner;
    if (std::find(behind.begin(), behind.end(), owner) == behind.end()) behind.push_back(owner);
  }
  if (!layer && behind.empty()) return nullptr;
  // A chain of operations behind one layer needs no link each.
  if (!layer && behind.size() == 1) return behind[0];
  return std::make_shared<const Kept>(Kept{std::move(layer), std::move(behind)});
}

std::vector<Tensor> outputs_of(const std::shared_ptr<const SymbolicCall>& call,
                               const std::shared_ptr<const void>& owner) {
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < call->outputs.size(); ++i) {
    outputs.emplace_back(std::make_shared<const Symbol>(Symbol{call, i, owner}));
  }
  return outputs;
}

}  // namespace openrnn::graph
