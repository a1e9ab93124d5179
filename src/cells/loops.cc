// Loops that are made of dynamic_rnn.
#include "base/message.h"
#include "openrnn/cells.h"

namespace openrnn {
namespace {

Tensor reversed(const Tensor& x, const BidirectionalOptions& options) {
  if (!options.lengths.empty()) {
    return ops::reverse_sequence_by(x, options.lengths, options.time_major);
  }
  return ops::reverse_sequence(x, options.sequence_lengths.value_or(std::vector<std::int32_t>{}),
                               options.time_major);
}

}  // namespace

BidirectionalResult bidirectional_dynamic_rnn(RnnCell& cell_fw, RnnCell& cell_bw,
                                              const Tensor& inputs,
                                              const BidirectionalOptions& options) {
  const VariableScope scope(options.scope.empty() ? "bidirectional_rnn" : options.scope,
                            VariableScope::current_reuse());
  DynamicRnnOptions direction{.sequence_lengths = options.sequence_lengths,
                              .lengths = options.lengths,
                              .initial_state = options.initial_state_fw,
                              .dtype = options.dtype,
                              .time_major = options.time_major,
                              .scope = "fw"};
  BidirectionalResult result;
  // This call checks inputs and lengths, for the reversal below as well.
  result.fw = dynamic_rnn(cell_fw, inputs, direction);
  direction.initial_state = options.initial_state_bw;
  direction.scope = "bw";
  result.bw = dynamic_rnn(cell_bw, reversed(cell_bw.placed(inputs), options), direction);
  result.bw.outputs = reversed(result.bw.outputs, options);
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
