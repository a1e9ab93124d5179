// Computing what was recorded.
#include <algorithm>

#include "base/message.h"
#include "openrnn/graph_symbolic.h"

namespace openrnn {
void SymbolicValues::set(const Tensor& symbolic, const Tensor& value) {
  const Symbol& symbol = *symbolic.symbol();
  if (value.dtype() != symbolic.dtype() || !shapes_fit(symbolic.shape(), value.shape())) {
    throw ArgumentError(message("[", symbol.call->op, "] the value is ", dtype_name(value.dtype()),
                                " of shape ", to_string(value.shape()), ", expected ",
                                dtype_name(symbolic.dtype()), " of shape ",
                                to_string(symbolic.shape()), " (-1: any)"));
  }
  std::vector<Tensor>& outputs = values_[symbol.call.get()];
  outputs.resize(symbol.call->outputs.size());
  outputs[symbol.index] = value;
  sources_.push_back(symbolic);
}

const Tensor* SymbolicValues::known(const Symbol& symbol) const {
  const auto found = values_.find(symbol.call.get());
  if (found == values_.end() || found->second[symbol.index].empty()) return nullptr;
  return &found->second[symbol.index];
}

bool SymbolicValues::complete(const SymbolicCall& call) const {
  const auto found = values_.find(&call);
  return found != values_.end() && !found->second.empty() &&
         std::none_of(found->second.begin(), found->second.end(),
                      [](const Tensor& value) { return value.empty(); });
}

void SymbolicValues::run(const SymbolicCall& call) {
  if (!call.run) {
    throw ArgumentError(
        message("[", call.op, "] the Input has no value, expected it among the ", "inputs"));
  }
  std::vector<Tensor> inputs;
  for (const Tensor& input : call.inputs) inputs.push_back(get(input));
  std::vector<Tensor> outputs = call.run(inputs, replay_);
  // Values that were set before, as inputs of the model, stay.
  std::vector<Tensor>& kept = values_[&call];
  kept.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (kept[i].empty()) kept[i] = std::move(outputs[i]);
  }
}

Tensor SymbolicValues::get(const Tensor& tensor) {
  if (!tensor.is_symbolic()) return tensor;
  const Symbol& symbol = *tensor.symbol();
  if (const Tensor* value = known(symbol)) return *value;
  // What feeds a call has run before it, so that `run` finds its inputs known.
  const auto done = [this](const SymbolicCall& call) { return complete(call); };
  for (const auto& call : calls_between(sources_, {tensor}, done)) run(*call);
  return *known(symbol);
}

}  // namespace openrnn
