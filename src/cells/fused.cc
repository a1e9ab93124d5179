#include "cells/fused.h"

#include <typeinfo>

#include "openrnn/engine.h"

namespace openrnn::cells {
namespace {

bool runs_there(const RnnSpec& spec, const Device& device) {
  return !device.engine() || device.engine()->unsupported(spec).empty();
}

// A state [B, size] as [1, B, size].
Tensor as_layer(const Tensor& state) {
  return ops::reshape(state, {1, state.shape()[0], state.shape()[1]});
}
Tensor of_layer(const Tensor& state) {
  return ops::reshape(state, {state.shape()[1], state.shape()[2]});
}

DynamicRnnResult run_network(const CellNetwork& network, const Tensor& x, const CellState& state,
                             const LengthValues& lengths) {
  ops::RnnInputs in;
  in.call = "dynamic_rnn";
  in.x = x;
  in.h0 = as_layer(state.back());
  if (network.spec.has_cell()) in.c0 = as_layer(state.front());
  in.params = network.params;
  in.sequence_lengths = lengths;
  in.training = false;
  in.save = true;
  const ops::RnnOutputs out = ops::rnn(network.spec, in, nullptr);
  DynamicRnnResult result{out.output, {}};
  if (network.spec.has_cell()) result.state.push_back(of_layer(out.c));
  result.state.push_back(of_layer(out.h));
  return result;
}

// The cells of a stack, or the cell itself.
std::vector<RnnCell*> cells_of(RnnCell& cell) {
  const auto* const stack = dynamic_cast<const MultiRNNCell*>(&cell);
  if (!stack || typeid(*stack) != typeid(MultiRNNCell) || cell.overridden()) return {&cell};
  std::vector<RnnCell*> cells;
  for (const auto& each : stack->cells()) cells.push_back(each.get());
  return cells;
}

bool fits(const RnnCell& cell, const Tensor& x, const CellState& state) {
  const std::vector<std::int64_t> sizes = cell.state_size();
  bool same = state.size() == sizes.size();
  for (std::size_t i = 0; same && i < state.size(); ++i) {
    same = state[i].shape() == Shape{x.shape()[1], sizes[i]} && state[i].dtype() == x.dtype();
  }
  return same;
}

}  // namespace

std::optional<DynamicRnnResult> run_fused(RnnCell& cell, const Tensor& x, const CellState& state,
                                          const LengthValues& lengths) {
  // The parameters of one step are not worth bringing together.
  if (x.shape()[0] < 2 || x.shape()[1] == 0) return std::nullopt;
  const std::vector<RnnCell*> cells = cells_of(cell);
  for (const RnnCell* each : cells) {
    if (each->overridden() || !each->is_network()) return std::nullopt;
  }
  // Before anything is made: a loop says what is wrong.
  if (!fits(cell, x, state)) return std::nullopt;
  // Makes the variables, checks the rest.
  cell(Tensor(DeviceArray::zeros(x.device(), x.dtype(), {0, x.shape()[2]})),
       cell.zero_state(0, x.dtype()));
  std::vector<CellNetwork> networks;
  for (const RnnCell* each : cells) {
    networks.push_back(each->network());
    if (!runs_there(networks.back().spec, x.device())) return std::nullopt;
  }
  DynamicRnnResult result{x, {}};
  auto from = state.begin();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto to = from + static_cast<std::ptrdiff_t>(cells[i]->state_size().size());
    DynamicRnnResult next =
        run_network(networks[i], cells[i]->placed(result.outputs), CellState(from, to), lengths);
    result.outputs = std::move(next.outputs);
    for (Tensor& each : next.state) result.state.push_back(std::move(each));
    from = to;
  }
  return result;
}

}  // namespace openrnn::cells
