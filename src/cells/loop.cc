// One loop of a cell over time.
#include "cells/loop.h"

#include <algorithm>

#include "base/message.h"
#include "cells/fused.h"
#include "graph/scope_stack.h"

namespace openrnn::cells {
namespace {

Tensor zeros(const Device& device, DType dtype, Shape shape) {
  return Tensor(DeviceArray::zeros(device, dtype, std::move(shape)));
}

Tensor zeros_like(const Tensor& x) { return zeros(x.device(), x.dtype(), x.shape()); }

CellState no_rows(const CellState& state) {
  CellState none;
  for (const Tensor& part : state) {
    none.push_back(zeros(part.device(), part.dtype(), {0, part.shape()[1]}));
  }
  return none;
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
  CellResult result = cell(ops::select_rows(rows, x, zeros_like(x)), state);
  result.output = ops::select_rows(rows, result.output, zeros_like(result.output));
  for (std::size_t i = 0; i < state.size(); ++i) {
    result.state[i] = ops::select_rows(rows, result.state[i], state[i]);
  }
  return result;
}

// x [T, B, I]; the cell's variables are made in the current scope.
DynamicRnnResult run_values(std::string_view call, RnnCell& cell, const Tensor& x, CellState state,
                            const LengthValues& lengths) {
  const Device& device = x.device();
  const std::int64_t max_time = x.shape()[0], batch = x.shape()[1];
  if (max_time == 0) {
    // With batch size 0, which uses up no mask: makes the variables.
    check_state(call, cell, batch, state);
    cell(zeros(device, x.dtype(), {0, x.shape()[2]}), no_rows(state));
    return {zeros(device, x.dtype(), {0, batch, cell.step_output_size()}), std::move(state)};
  }
  const std::vector<Tensor> steps = ops::unstack(x);
  std::vector<Tensor> outputs;
  outputs.reserve(steps.size());
  std::optional<graph::ReopenedScope> later;
  for (std::int64_t t = 0; t < max_time; ++t) {
    // The first step made the variables.
    if (t == 1 && cell.needs_reuse()) later.emplace(VariableScope::current_name(), true);
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

// Arguments of a recorded loop besides symbolic inputs, states and lengths.
Attributes attributes_of(DType dtype, std::size_t states, const LengthValues& lengths) {
  Attributes loop{std::string(dtype_name(dtype)), static_cast<std::int64_t>(states),
                  VariableScope::current_name()};
  if (lengths) loop.emplace_back(std::vector<std::int64_t>(lengths->begin(), lengths->end()));
  return loop;
}

LengthValues recorded_lengths(const Attributes& loop) {
  if (loop.size() < 4) return std::nullopt;
  const auto& lengths = std::get<std::vector<std::int64_t>>(loop[3]);
  return std::vector<std::int32_t>(lengths.begin(), lengths.end());
}

// The whole loop as one call of the cell: how many steps there are is not known yet.
DynamicRnnResult record_cell(std::string_view call, RnnCell& cell, const Tensor& x,
                             const Start& start, const Lengths& lengths) {
  const std::int64_t depth = x.shape()[2], batch = x.shape()[1];
  if (depth < 0) {
    throw ArgumentError(message("[", call, "] inputs have shape ", to_string(x.shape()),
                                ", expected a last dimension that is known"));
  }
  // With batch size 0: makes the variables.
  cell(zeros(cell.device(), x.dtype(), {0, depth}), cell.zero_state(0, x.dtype()));
  std::vector<Tensor> inputs{x};
  if (start.given) inputs.insert(inputs.end(), start.given->begin(), start.given->end());
  const std::size_t states = inputs.size() - 1;
  if (!lengths.symbolic.empty()) inputs.push_back(lengths.symbolic);
  std::vector<TensorSpec> specs{{x.dtype(), {x.shape()[0], batch, cell.step_output_size()}}};
  for (const CellStatePart& part : cell.step_state())
    specs.push_back({x.dtype(), {batch, part.size}});
  const std::vector<Tensor> made = cell.record_loop(
      inputs, std::move(specs),
      {.attributes = attributes_of(start.dtype, states, lengths.values),
       // With the scope a copy of the cell would find the variables of the original.
       .copies = !cell.needs_reuse()});
  return {made[0], {made.begin() + 1, made.end()}};
}

}  // namespace

Tensor placed_inputs(std::string_view call, const RnnCell& cell, const Tensor& inputs,
                     bool time_major) {
  if (inputs.shape().size() != 3) {
    throw ArgumentError(message("[", call, "] inputs have shape ", to_string(inputs.shape()),
                                ", expected 3 dimensions"));
  }
  const Tensor given = cell.placed(inputs);
  return time_major ? given : ops::transpose_leading(given);
}

void check_lengths(std::string_view call, const LengthValues& lengths, const Shape& time_major) {
  if (!lengths) return;
  const std::int64_t max_time = time_major[0], batch = time_major[1];
  if (batch >= 0 && lengths->size() != static_cast<std::size_t>(batch)) {
    throw ArgumentError(message("[", call, "] sequence_lengths has ", lengths->size(),
                                " values, expected ", batch));
  }
  for (std::size_t row = 0; row < lengths->size(); ++row) {
    if ((*lengths)[row] < 0 || (max_time >= 0 && (*lengths)[row] > max_time)) {
      throw ArgumentError(message("[", call, "] sequence_lengths[", row, "] is ", (*lengths)[row],
                                  ", expected 0 to ",
                                  max_time < 0 ? "max_time" : message(max_time)));
    }
  }
}

Start make_start(std::string_view call, const std::optional<CellState>& given,
                 std::optional<DType> dtype) {
  if (given || dtype) return {given, dtype.value_or(DType::kFloat32)};
  throw ArgumentError(
      message("[", call, "] neither an initial state nor a dtype, expected one of them"));
}

DynamicRnnResult run_cell(std::string_view call, RnnCell& cell, const Tensor& x, const Start& start,
                          const Lengths& lengths) {
  if (any_symbolic(x, lengths.symbolic) || (start.given && any_symbolic(*start.given))) {
    return record_cell(call, cell, x, start, lengths);
  }
  const Tensor there = cell.placed(x);
  const CellState state = start.state(cell, x.shape()[1]);
  if (const auto fused = run_fused(cell, there, state, lengths.values)) return *fused;
  return run_values(call, cell, there, state, lengths.values);
}

}  // namespace openrnn::cells

namespace openrnn {

std::vector<Tensor> RnnCell::compute_loop(const Attributes& loop,
                                          const std::vector<Tensor>& inputs) {
  std::optional<graph::ReopenedScope> reopened;
  if (needs_reuse()) reopened.emplace(std::get<std::string>(loop[2]), true);
  cells::Start start{.given = {}, .dtype = parse_dtype(std::get<std::string>(loop[0]))};
  const auto states = std::get<std::int64_t>(loop[1]);
  const auto end = inputs.begin() + 1 + states;
  if (states > 0) start.given.emplace(inputs.begin() + 1, end);
  const cells::Lengths lengths{end == inputs.end() ? cells::recorded_lengths(loop)
                                                   : ops::lengths_of("dynamic_rnn", inputs.back())};
  cells::check_lengths("dynamic_rnn", lengths.values, inputs[0].shape());
  DynamicRnnResult result = cells::run_cell("dynamic_rnn", *this, inputs[0], start, lengths);
  result.state.insert(result.state.begin(), std::move(result.outputs));
  return std::move(result.state);
}

}  // namespace openrnn
