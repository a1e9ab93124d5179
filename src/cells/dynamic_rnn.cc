// The loops over time.
#include <algorithm>

#include "base/message.h"
#include "openrnn/cells.h"

namespace openrnn {
namespace {

using Lengths = std::optional<std::vector<std::int32_t>>;

Tensor zeros(DType dtype, Shape shape) {
  return Tensor(DeviceArray::zeros(default_device(), dtype, std::move(shape)));
}

void check_inputs(std::string_view call, const Tensor& inputs) {
  if (inputs.shape().size() != 3) {
    throw ArgumentError(message("[", call, "] inputs have shape ", to_string(inputs.shape()),
                                ", expected 3 dimensions"));
  }
}

void check_lengths(std::string_view call, const Lengths& lengths, const Shape& time_major) {
  if (!lengths) return;
  if (lengths->size() != static_cast<std::size_t>(time_major[1])) {
    throw ArgumentError(message("[", call, "] sequence_lengths has ", lengths->size(),
                                " values, expected ", time_major[1]));
  }
  for (std::size_t row = 0; row < lengths->size(); ++row) {
    if ((*lengths)[row] < 0 || (*lengths)[row] > time_major[0]) {
      throw ArgumentError(message("[", call, "] sequence_lengths[", row, "] is ", (*lengths)[row],
                                  ", expected 0 to ", time_major[0]));
    }
  }
}

CellState start_state(std::string_view call, const RnnCell& cell,
                      const std::optional<CellState>& given, std::optional<DType> dtype,
                      std::int64_t batch) {
  if (given) return *given;
  if (!dtype) {
    throw ArgumentError(
        message("[", call, "] neither an initial state nor a dtype, expected one of them"));
  }
  return cell.zero_state(batch, *dtype);
}

// Rows that are still running at step t.
std::vector<bool> running(const std::vector<std::int32_t>& lengths, std::int64_t t) {
  std::vector<bool> rows(lengths.size());
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = t < lengths[row];
  return rows;
}

// One step in which only the rows of `rows` take part; the others read nothing.
CellResult masked_step(RnnCell& cell, const Tensor& x, const CellState& state,
                       const std::vector<bool>& rows) {
  CellResult result = cell(ops::select_rows(rows, x, zeros(x.dtype(), x.shape())), state);
  result.output =
      ops::select_rows(rows, result.output, zeros(result.output.dtype(), result.output.shape()));
  for (std::size_t i = 0; i < state.size(); ++i) {
    result.state[i] = ops::select_rows(rows, result.state[i], state[i]);
  }
  return result;
}

// x [T, B, I]; the cell's variables are made in the current scope.
DynamicRnnResult run_cell(RnnCell& cell, const Tensor& x, CellState state, const Lengths& lengths) {
  const std::int64_t max_time = x.shape()[0], batch = x.shape()[1];
  if (max_time == 0) {
    cell(zeros(x.dtype(), {batch, x.shape()[2]}), state);  // makes the variables, checks the state
    return {zeros(x.dtype(), {0, batch, cell.output_size()}), std::move(state)};
  }
  const std::vector<Tensor> steps = ops::unstack(x);
  std::vector<Tensor> outputs;
  outputs.reserve(steps.size());
  for (std::int64_t t = 0; t < max_time; ++t) {
    const Tensor& step = steps[static_cast<std::size_t>(t)];
    const std::vector<bool> rows =
        lengths ? running(*lengths, t) : std::vector<bool>(static_cast<std::size_t>(batch), true);
    const bool all = std::find(rows.begin(), rows.end(), false) == rows.end();
    CellResult result = all ? cell(step, state) : masked_step(cell, step, state, rows);
    outputs.push_back(std::move(result.output));
    state = std::move(result.state);
  }
  return {ops::stack(outputs), std::move(state)};
}

struct BidirectionalLayer {
  RnnCell& fw;
  RnnCell& bw;
  CellState state_fw, state_bw;
};

// x [T, B, I] to [T, B, 2 O].
Tensor run_bidirectional(BidirectionalLayer& layer, const Tensor& x, const Lengths& lengths) {
  const std::vector<std::int32_t> reversal = lengths.value_or(std::vector<std::int32_t>{});
  const VariableScope scope("bidirectional_rnn", VariableScope::current_reuse());
  DynamicRnnResult fw, bw;
  {
    const VariableScope direction("fw", VariableScope::current_reuse());
    fw = run_cell(layer.fw, x, std::move(layer.state_fw), lengths);
  }
  {
    const VariableScope direction("bw", VariableScope::current_reuse());
    bw = run_cell(layer.bw, ops::reverse_sequence(x, reversal), std::move(layer.state_bw), lengths);
  }
  layer.state_fw = std::move(fw.state);
  layer.state_bw = std::move(bw.state);
  return ops::concat({fw.outputs, ops::reverse_sequence(bw.outputs, reversal)}, 2);
}

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

DynamicRnnResult dynamic_rnn(RnnCell& cell, const Tensor& inputs,
                             const DynamicRnnOptions& options) {
  constexpr std::string_view kCall = "dynamic_rnn";
  check_inputs(kCall, inputs);
  const Tensor x = options.time_major ? inputs : ops::transpose_leading(inputs);
  check_lengths(kCall, options.sequence_lengths, x.shape());
  CellState state = start_state(kCall, cell, options.initial_state, options.dtype, x.shape()[1]);
  const VariableScope scope(options.scope.empty() ? "rnn" : options.scope,
                            VariableScope::current_reuse());
  DynamicRnnResult result = run_cell(cell, x, std::move(state), options.sequence_lengths);
  if (!options.time_major) result.outputs = ops::transpose_leading(result.outputs);
  return result;
}

StackBidirectionalResult stack_bidirectional_dynamic_rnn(
    const std::vector<std::shared_ptr<RnnCell>>& cells_fw,
    const std::vector<std::shared_ptr<RnnCell>>& cells_bw, const Tensor& inputs,
    const StackBidirectionalOptions& options) {
  constexpr std::string_view kCall = "stack_bidirectional_dynamic_rnn";
  check_cells(cells_fw, cells_bw, options);
  check_inputs(kCall, inputs);
  Tensor x = options.time_major ? inputs : ops::transpose_leading(inputs);
  check_lengths(kCall, options.sequence_lengths, x.shape());
  const std::int64_t batch = x.shape()[1];
  const VariableScope scope(options.scope.empty() ? "stack_bidirectional_rnn" : options.scope,
                            VariableScope::current_reuse());
  StackBidirectionalResult result;
  for (std::size_t i = 0; i < cells_fw.size(); ++i) {
    const auto given = [&](const std::optional<std::vector<CellState>>& states) {
      return states ? std::optional<CellState>((*states)[i]) : std::nullopt;
    };
    const VariableScope cell_scope(message("cell_", i), VariableScope::current_reuse());
    BidirectionalLayer layer{
        *cells_fw[i], *cells_bw[i],
        start_state(kCall, *cells_fw[i], given(options.initial_states_fw), options.dtype, batch),
        start_state(kCall, *cells_bw[i], given(options.initial_states_bw), options.dtype, batch)};
    x = run_bidirectional(layer, x, options.sequence_lengths);
    result.states_fw.push_back(std::move(layer.state_fw));
    result.states_bw.push_back(std::move(layer.state_bw));
  }
  result.outputs = options.time_major ? x : ops::transpose_leading(x);
  return result;
}

}  // namespace openrnn
