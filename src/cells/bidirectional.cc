// Loops in both directions.
#include "base/message.h"
#include "cells/loop.h"

namespace openrnn {
namespace {

using cells::Lengths;
using cells::Start;

Tensor reversed(const Tensor& x, const Lengths& lengths) {
  if (lengths.symbolic.empty()) {
    return ops::reverse_sequence(x, lengths.values.value_or(std::vector<std::int32_t>{}));
  }
  return ops::reverse_sequence_by(x, lengths.symbolic);
}

// Both cells of a layer, in the scopes `fw` and `bw` of the current one.
struct BothDirections {
  RnnCell& fw;
  RnnCell& bw;
  Start start_fw, start_bw;

  // x [T, B, I]; outputs at the time steps of their inputs.
  BidirectionalResult run(std::string_view call, const Tensor& x, const Lengths& lengths) {
    BidirectionalResult result;
    {
      const VariableScope direction("fw", VariableScope::current_reuse());
      result.fw = cells::run_cell(call, fw, x, start_fw, lengths);
    }
    const VariableScope direction("bw", VariableScope::current_reuse());
    result.bw = cells::run_cell(call, bw, reversed(x, lengths), start_bw, lengths);
    result.bw.outputs = reversed(result.bw.outputs, lengths);
    return result;
  }
};

void check_cells(const std::vector<std::shared_ptr<RnnCell>>& fw,
                 const std::vector<std::shared_ptr<RnnCell>>& bw,
                 const StackBidirectionalOptions& options) {
  constexpr const char* kCall = "[stack_bidirectional_dynamic_rnn] ";
  if (fw.empty() || bw.empty()) {
    throw ArgumentError(message(kCall, fw.size(), " cells_fw and ", bw.size(),
                                " cells_bw, expected at least 1 of each"));
  }
  if (fw.size() != bw.size()) {
    throw ArgumentError(message(kCall, fw.size(), " cells_fw and ", bw.size(),
                                " cells_bw, expected as many of each"));
  }
  for (std::size_t i = 0; i < fw.size(); ++i) {
    if (!fw[i] || !bw[i]) throw ArgumentError(message(kCall, "cell ", i, " is null"));
  }
  for (const auto* states : {&options.initial_states_fw, &options.initial_states_bw}) {
    if (*states && (*states)->size() != fw.size()) {
      throw ArgumentError(message(kCall, (*states)->size(), " initial states, expected ", fw.size(),
                                  ", one a layer"));
    }
  }
}

}  // namespace

BidirectionalResult bidirectional_dynamic_rnn(RnnCell& cell_fw, RnnCell& cell_bw,
                                              const Tensor& inputs,
                                              const BidirectionalOptions& options) {
  constexpr std::string_view kCall = "bidirectional_dynamic_rnn";
  const Tensor x = cells::placed_inputs(kCall, cell_fw, inputs, options.time_major);
  const Lengths lengths = cells::lengths_in(kCall, options, x.shape());
  BothDirections layer{cell_fw, cell_bw,
                       cells::make_start(kCall, options.initial_state_fw, options.dtype),
                       cells::make_start(kCall, options.initial_state_bw, options.dtype)};
  const VariableScope scope(options.scope.empty() ? "bidirectional_rnn" : options.scope,
                            VariableScope::current_reuse());
  BidirectionalResult result = layer.run(kCall, x, lengths);
  if (!options.time_major) {
    result.fw.outputs = ops::transpose_leading(result.fw.outputs);
    result.bw.outputs = ops::transpose_leading(result.bw.outputs);
  }
  return result;
}

StackBidirectionalResult stack_bidirectional_dynamic_rnn(
    const std::vector<std::shared_ptr<RnnCell>>& cells_fw,
    const std::vector<std::shared_ptr<RnnCell>>& cells_bw, const Tensor& inputs,
    const StackBidirectionalOptions& options) {
  constexpr std::string_view kCall = "stack_bidirectional_dynamic_rnn";
  check_cells(cells_fw, cells_bw, options);
  Tensor x = cells::placed_inputs(kCall, *cells_fw[0], inputs, options.time_major);
  const Lengths lengths = cells::lengths_in(kCall, options, x.shape());
  const VariableScope scope(options.scope.empty() ? "stack_bidirectional_rnn" : options.scope,
                            VariableScope::current_reuse());
  StackBidirectionalResult result;
  for (std::size_t i = 0; i < cells_fw.size(); ++i) {
    const auto given = [&](const std::optional<std::vector<CellState>>& states) {
      return states ? std::optional<CellState>((*states)[i]) : std::nullopt;
    };
    const VariableScope cell_scope(message("cell_", i), VariableScope::current_reuse());
    BothDirections layer{*cells_fw[i], *cells_bw[i],
                         cells::make_start(kCall, given(options.initial_states_fw), options.dtype),
                         cells::make_start(kCall, given(options.initial_states_bw), options.dtype)};
    const VariableScope layer_scope("bidirectional_rnn", VariableScope::current_reuse());
    BidirectionalResult both = layer.run(kCall, x, lengths);
    x = ops::concat({both.fw.outputs, both.bw.outputs}, 2);
    result.states_fw.push_back(std::move(both.fw.state));
    result.states_bw.push_back(std::move(both.bw.state));
  }
  result.outputs = options.time_major ? x : ops::transpose_leading(x);
  return result;
}

}  // namespace openrnn
