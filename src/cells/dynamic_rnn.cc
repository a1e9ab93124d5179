// Loops in one direction.
#include "base/message.h"
#include "cells/loop.h"

namespace openrnn {

DynamicRnnResult dynamic_rnn(RnnCell& cell, const Tensor& inputs,
                             const DynamicRnnOptions& options) {
  constexpr std::string_view kCall = "dynamic_rnn";
  const Tensor x = cells::placed_inputs(kCall, cell, inputs, options.time_major);
  const cells::Lengths lengths = cells::lengths_in(kCall, options, x.shape());
  const cells::Start start = cells::make_start(kCall, options.initial_state, options.dtype);
  const VariableScope scope(options.scope.empty() ? "rnn" : options.scope,
                            VariableScope::current_reuse());
  DynamicRnnResult result = cells::run_cell(kCall, cell, x, start, lengths);
  if (!options.time_major) result.outputs = ops::transpose_leading(result.outputs);
  return result;
}

StaticRnnResult static_rnn(RnnCell& cell, const std::vector<Tensor>& inputs,
                           const DynamicRnnOptions& options) {
  if (inputs.empty()) {
    throw ArgumentError("[static_rnn] no inputs, expected one for each time step");
  }
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    if (inputs[t].shape().size() != 2) {
      throw ArgumentError(message("[static_rnn] inputs[", t, "] has shape ",
                                  to_string(inputs[t].shape()), ", expected 2 dimensions"));
    }
  }
  DynamicRnnOptions loop = options;
  loop.time_major = true;
  DynamicRnnResult result = dynamic_rnn(cell, ops::stack(inputs), loop);
  return {ops::unstack(result.outputs), std::move(result.state)};
}

}  // namespace openrnn
