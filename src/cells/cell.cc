// What all cells share: states, checks, the cells' variables.
#include "base/message.h"
#include "cells/loop.h"

namespace openrnn {

void cells::check_state(std::string_view call, const RnnCell& cell, std::int64_t batch,
                        const CellState& state) {
  const std::vector<CellStatePart> parts = cell.step_state();
  if (state.size() != parts.size()) {
    throw ArgumentError(
        message("[", call, "] a state of ", state.size(), " tensors, expected ", parts.size()));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Shape expected{batch, parts[i].size};
    if (!shapes_fit(state[i].shape(), expected)) {
      throw ArgumentError(message("[", call, "] state[", i, "] has shape ",
                                  to_string(state[i].shape()), ", expected ", to_string(expected)));
    }
  }
}

std::vector<CellStatePart> RnnCell::step_state() const {
  if (overrides_.state) return overrides_.state();
  std::vector<CellStatePart> parts;
  for (const std::int64_t size : state_size()) parts.push_back({size, is_memory(parts.size())});
  return parts;
}

std::int64_t RnnCell::step_output_size() const {
  return overrides_.output_size ? overrides_.output_size() : output_size();
}

CellState RnnCell::zero_state(std::int64_t batch_size, DType dtype) const {
  return overrides_.zero_state ? overrides_.zero_state(batch_size, dtype)
                               : class_zero_state(batch_size, dtype);
}

CellState RnnCell::class_zero_state(std::int64_t batch_size, DType dtype) const {
  if (batch_size < 0) {
    throw ArgumentError(message("[zero_state] batch_size ", batch_size, ", expected 0 or more"));
  }
  // Where a wrapper's own class says what its state is, its cells do not.
  return overrides_.state ? RnnCell::zeros_of_class(batch_size, dtype)
                          : zeros_of_class(batch_size, dtype);
}

CellState RnnCell::zeros_of_class(std::int64_t batch_size, DType dtype) const {
  CellState state;
  for (const CellStatePart& part : step_state()) {
    state.emplace_back(DeviceArray::zeros(device(), dtype, {batch_size, part.size}));
  }
  return state;
}

CellResult RnnCell::operator()(const Tensor& inputs, const CellState& state,
                               const std::string& scope) {
  if (!overrides_.call) return run(inputs, state, scope, true);
  CellResult result;
  run_and_adopt([&] { result = overrides_.call(inputs, state, scope); });
  return result;
}

CellResult RnnCell::run_step(const Tensor& inputs, const CellState& state,
                             const std::string& scope) {
  return run(inputs, state, scope, true);
}

CellResult RnnCell::run_class(const Tensor& inputs, const CellState& state) {
  if (!part_of_call()) return run(inputs, state, "", false);
  return class_step(inputs, state);
}

CellResult RnnCell::class_step(const Tensor& inputs, const CellState& state) {
  require_class_build();
  CellState lying;
  for (const Tensor& tensor : state) lying.push_back(placed(tensor));
  return step(placed(inputs), lying);
}

std::vector<Tensor> RnnCell::compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                          const Replay&) {
  if (call.size() > 1) return compute_loop(call, inputs);
  const CellState state(inputs.begin() + 1, inputs.end());
  CellResult result;
  if (std::get<bool>(call.at(0)) && overrides_.step) {
    const PartOfCall part(*this);
    run_in_scope([&] { result = overrides_.step(inputs[0], state); });
  } else {
    result = class_step(inputs[0], state);
  }
  result.state.insert(result.state.begin(), std::move(result.output));
  return std::move(result.state);
}

CellResult RnnCell::run(const Tensor& inputs, const CellState& state, const std::string& scope,
                        bool overridden) {
  if (inputs.shape().size() != 2) {
    throw ArgumentError(message("[", call_, "] inputs have shape ", to_string(inputs.shape()),
                                ", expected 2 dimensions [batch, depth]"));
  }
  cells::check_state(call_, *this, inputs.shape()[0], state);
  check_call(inputs, state);
  ensure_built(inputs.shape(), scope);
  std::vector<Tensor> given{inputs};
  given.insert(given.end(), state.begin(), state.end());
  begin_call(given);
  const Attributes call{overridden};
  std::vector<Tensor> results = compute_call(call, given, Replay{});
  if (any_symbolic(given)) {
    // That step made the cell's variables, and gives the shapes.
    std::vector<TensorSpec> specs;
    for (const Tensor& result : results) specs.push_back({result.dtype(), result.shape()});
    results = record_node(given, std::move(specs), {call});
  }
  end_call(given, results);
  return {results[0], {results.begin() + 1, results.end()}};
}

VariableCell::VariableCell(std::string call, std::string default_name,
                           CompatibleCellOptions options)
    : RnnCell(std::move(call), options.name, std::move(default_name), options.dtype,
              options.device),
      options_(std::move(options)) {
  set_reuse(options_.reuse);
  if (options_.num_units < 1) {
    throw ArgumentError(
        message("[", call_name(), "] num_units ", options_.num_units, ", expected 1 or more"));
  }
  if (options_.num_proj < 0 || options_.num_proj > options_.num_units) {
    throw ArgumentError(message("[", call_name(), "] num_proj ", options_.num_proj,
                                ", expected 0 to num_units ", options_.num_units));
  }
  if (!is_floating(options_.dtype)) {
    throw ArgumentError(message("[", call_name(), "] dtype ", dtype_name(options_.dtype),
                                ", expected float16, bfloat16, float32 or float64"));
  }
}

void VariableCell::check_call(const Tensor& inputs, const CellState& state) const {
  if (built() && inputs.shape()[1] >= 0 && inputs.shape()[1] != input_size_) {
    throw ArgumentError(message("[", call_name(), "] inputs have depth ", inputs.shape()[1],
                                ", expected ", input_size_, " as the cell was built for"));
  }
  const auto check_dtype = [this](const Tensor& tensor, const char* what) {
    if (tensor.dtype() == dtype()) return;
    throw ArgumentError(message("[", call_name(), "] ", what, " ", dtype_name(tensor.dtype()),
                                ", expected ", dtype_name(dtype())));
  };
  check_dtype(inputs, "inputs are");
  for (const Tensor& tensor : state) check_dtype(tensor, "a state is");
}

void VariableCell::copy_cell(const VariableCell& other) {
  copy_layer(other);
  input_size_ = other.input_size_;
}

CompatibleCellOptions VariableCell::get_config() const {
  CompatibleCellOptions config = options_;
  config.name = name();
  return config;
}

void VariableCell::do_build(const Shape& input_shape) {
  if (input_shape.empty() || input_shape.back() < 1) {
    throw ArgumentError(message("[", call_name(), "] an input shape of ", to_string(input_shape),
                                ", expected its last dimension to be defined"));
  }
  input_size_ = input_shape.back();
  set_input_spec({.ndim = 2, .axes = {{-1, input_size_}}});
  make_variables(input_size_);
}

Variable VariableCell::add_kernel(const std::string& name, const Shape& shape) {
  VariableOptions variable;
  variable.dtype = dtype();
  variable.initializer = options_.kernel_initializer;
  if (options_.seed) variable.seed = static_cast<std::uint64_t>(*options_.seed);
  return add_weight(name, shape, variable);
}

Variable VariableCell::add_bias(const std::string& name, std::int64_t size, double value) {
  return add_bias(name, size, constant_initializer(value));
}

Variable VariableCell::add_bias(const std::string& name, std::int64_t size,
                                Initializer initializer) {
  VariableOptions variable;
  variable.dtype = dtype();
  variable.initializer = std::move(initializer);
  if (options_.seed) variable.seed = static_cast<std::uint64_t>(*options_.seed);
  return add_weight(name, {size}, variable);
}

std::shared_ptr<RnnCell> make_compatible_cell(RnnMode mode, CompatibleCellOptions options) {
  switch (mode) {
    case RnnMode::kLstm:
      return std::make_shared<CudnnCompatibleLSTMCell>(std::move(options));
    case RnnMode::kGru:
      return std::make_shared<CudnnCompatibleGRUCell>(std::move(options));
    case RnnMode::kRnnTanh:
      return std::make_shared<BasicRNNCell>(std::move(options));
    default:
      return std::make_shared<BasicRNNCell>(std::move(options), ops::relu);
  }
}

}  // namespace openrnn
