// The loops over time.
#include <algorithm>

#include "base/message.h"
#include "python/cells/cells.h"

namespace openrnn::python {
namespace {

std::optional<CellState> optional_state(nb::handle state, DType dtype) {
  if (state.is_none()) return std::nullopt;
  return as_state(state, dtype, "initial_state");
}

std::pair<Tensor, CellState> run_dynamic(nb::handle cell, nb::handle inputs, nb::handle lengths,
                                         nb::handle state, nb::handle dtype, bool time_major,
                                         const std::string& scope) {
  RnnCell& core = cell_of(cell, "dynamic_rnn");
  auto& ref = nb::cast<LayerRef&>(cell);
  ref.keep_graph();
  const DType wanted = dtype.is_none() ? core.dtype() : as_dtype(dtype);
  const Tensor x = as_tensor(inputs, {.call = "dynamic_rnn", .dtype = wanted});
  DynamicRnnOptions options;
  set_lengths(options, "dynamic_rnn", lengths);
  options.initial_state = optional_state(state, wanted);
  options.dtype = as_optional_dtype(dtype);
  options.time_major = time_major;
  options.scope = scope;
  const auto lock = ref.exclusive();
  DynamicRnnResult result = dynamic_rnn(core, x, options);
  return {std::move(result.outputs), std::move(result.state)};
}

// The cells of one call for this thread alone. In one order, so that two calls never wait for each
// other.
std::vector<std::unique_lock<std::recursive_mutex>> exclusive(std::vector<nb::handle> cells) {
  std::vector<const LayerRef*> refs;
  for (const nb::handle cell : cells) refs.push_back(&nb::cast<const LayerRef&>(cell));
  std::sort(refs.begin(), refs.end(), std::less<>());
  std::vector<std::unique_lock<std::recursive_mutex>> locks;
  for (const LayerRef* ref : refs) locks.push_back(ref->exclusive());
  return locks;
}

std::optional<std::vector<CellState>> optional_states(nb::handle states, DType dtype) {
  if (states.is_none()) return std::nullopt;
  std::vector<CellState> result;
  for (const nb::handle one : states) result.push_back(as_state(one, dtype, "initial_states"));
  return result;
}

std::tuple<Tensor, std::vector<CellState>, std::vector<CellState>> run_stack(
    nb::handle cells_fw, nb::handle cells_bw, nb::handle inputs, nb::handle states_fw,
    nb::handle states_bw, nb::handle dtype, nb::handle lengths, bool time_major,
    const std::string& scope) {
  constexpr const char* kCall = "stack_bidirectional_dynamic_rnn";
  const auto forward = shared_cells(cells_fw, kCall), backward = shared_cells(cells_bw, kCall);
  std::vector<nb::handle> cells(cells_fw.begin(), cells_fw.end());
  cells.insert(cells.end(), cells_bw.begin(), cells_bw.end());
  for (const nb::handle cell : cells) nb::cast<LayerRef&>(cell).keep_graph();
  const DType wanted = !dtype.is_none()  ? as_dtype(dtype)
                       : forward.empty() ? DType::kFloat32
                                         : forward[0]->dtype();
  StackBidirectionalOptions options;
  options.initial_states_fw = optional_states(states_fw, wanted);
  options.initial_states_bw = optional_states(states_bw, wanted);
  options.dtype = as_optional_dtype(dtype);
  set_lengths(options, kCall, lengths);
  options.time_major = time_major;
  options.scope = scope;
  const Tensor x = as_tensor(inputs, {.call = kCall, .dtype = wanted});
  const auto locks = exclusive(cells);
  StackBidirectionalResult result = stack_bidirectional_dynamic_rnn(forward, backward, x, options);
  return {std::move(result.outputs), std::move(result.states_fw), std::move(result.states_bw)};
}

// (fw, bw) of outputs and of states.
using BothDirections = std::tuple<std::pair<Tensor, Tensor>, std::pair<CellState, CellState>>;

BothDirections run_bidirectional(nb::handle cell_fw, nb::handle cell_bw, nb::handle inputs,
                                 nb::handle lengths, nb::handle state_fw, nb::handle state_bw,
                                 nb::handle dtype, bool time_major, const std::string& scope) {
  constexpr const char* kCall = "bidirectional_dynamic_rnn";
  RnnCell &forward = cell_of(cell_fw, kCall), &backward = cell_of(cell_bw, kCall);
  nb::cast<LayerRef&>(cell_fw).keep_graph();
  nb::cast<LayerRef&>(cell_bw).keep_graph();
  const DType wanted = dtype.is_none() ? forward.dtype() : as_dtype(dtype);
  BidirectionalOptions options;
  set_lengths(options, kCall, lengths);
  options.initial_state_fw = optional_state(state_fw, wanted);
  options.initial_state_bw = optional_state(state_bw, wanted);
  options.dtype = as_optional_dtype(dtype);
  options.time_major = time_major;
  options.scope = scope;
  const Tensor x = as_tensor(inputs, {.call = kCall, .dtype = wanted});
  const auto locks = exclusive({cell_fw, cell_bw});
  BidirectionalResult result = bidirectional_dynamic_rnn(forward, backward, x, options);
  return {{std::move(result.fw.outputs), std::move(result.bw.outputs)},
          {std::move(result.fw.state), std::move(result.bw.state)}};
}

std::pair<std::vector<Tensor>, CellState> run_static(nb::handle cell, nb::handle inputs,
                                                     nb::handle state, nb::handle dtype,
                                                     nb::handle lengths, const std::string& scope) {
  constexpr const char* kCall = "static_rnn";
  RnnCell& core = cell_of(cell, kCall);
  auto& ref = nb::cast<LayerRef&>(cell);
  ref.keep_graph();
  const DType wanted = dtype.is_none() ? core.dtype() : as_dtype(dtype);
  std::vector<Tensor> steps;
  for (const nb::handle one : inputs) {
    steps.push_back(as_tensor(one, {.call = kCall, .dtype = wanted}));
  }
  DynamicRnnOptions options;
  set_lengths(options, kCall, lengths);
  options.initial_state = optional_state(state, wanted);
  options.dtype = as_optional_dtype(dtype);
  options.scope = scope;
  const auto lock = ref.exclusive();
  StaticRnnResult result = static_rnn(core, steps, options);
  return {std::move(result.outputs), std::move(result.state)};
}

}  // namespace

RnnCell& cell_of(nb::handle object, const char* call) {
  const LayerRef* ref = nullptr;
  if (!nb::try_cast<const LayerRef*>(object, ref) || !ref) {
    throw TypeError(
        message("[", call, "] ", quoted_type(object), " is given, expected an RNN cell"));
  }
  return *ref->cell();
}

std::shared_ptr<RnnCell> shared_cell(nb::handle object, const char* call) {
  (void)cell_of(object, call);
  return nb::cast<const LayerRef&>(object).cell();
}

std::vector<std::shared_ptr<RnnCell>> shared_cells(nb::handle objects, const char* call) {
  std::vector<std::shared_ptr<RnnCell>> cells;
  for (const nb::handle object : objects) cells.push_back(shared_cell(object, call));
  return cells;
}

CellState as_state(nb::handle state, DType dtype, const char* call) {
  CellState tensors;
  for (const nb::handle one : state) {
    tensors.push_back(as_tensor(one, {.call = call, .dtype = dtype}));
  }
  return tensors;
}

void bind_loops(nb::module_& m) {
  m.def("dynamic_rnn", &run_dynamic, "cell"_any, "inputs"_any, "sequence_length"_any,
        "initial_state"_any, "dtype"_any, "time_major"_a, "scope"_a);
  m.def("stack_bidirectional_dynamic_rnn", &run_stack, "cells_fw"_any, "cells_bw"_any, "inputs"_any,
        "initial_states_fw"_any, "initial_states_bw"_any, "dtype"_any, "sequence_length"_any,
        "time_major"_a, "scope"_a);
  m.def("bidirectional_dynamic_rnn", &run_bidirectional, "cell_fw"_any, "cell_bw"_any, "inputs"_any,
        "sequence_length"_any, "initial_state_fw"_any, "initial_state_bw"_any, "dtype"_any,
        "time_major"_a, "scope"_a);
  m.def("static_rnn", &run_static, "cell"_any, "inputs"_any, "initial_state"_any, "dtype"_any,
        "sequence_length"_any, "scope"_a);
}

}  // namespace openrnn::python
