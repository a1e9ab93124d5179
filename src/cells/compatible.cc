#include "openrnn/cells.h"

namespace openrnn {

CudnnCompatibleLSTMCell::CudnnCompatibleLSTMCell(CompatibleCellOptions options)
    : VariableCell("CudnnCompatibleLSTMCell", "cudnn_compatible_lstm_cell", std::move(options)) {}

std::shared_ptr<CudnnCompatibleLSTMCell> CudnnCompatibleLSTMCell::from_config(
    CompatibleCellOptions config) {
  return std::make_shared<CudnnCompatibleLSTMCell>(std::move(config));
}

std::int64_t CudnnCompatibleLSTMCell::output_size() const {
  return projecting() ? options().num_proj : num_units();
}

std::vector<std::int64_t> CudnnCompatibleLSTMCell::state_size() const {
  return {num_units(), output_size()};
}

void CudnnCompatibleLSTMCell::make_variables(std::int64_t input_size) {
  kernel_ = add_kernel("kernel", {input_size + output_size(), 4 * num_units()});
  bias_ = add_bias("bias", 4 * num_units());
  if (projecting()) {
    projection_ = add_kernel("projection/kernel", {num_units(), output_size()});
  }
}

CellResult CudnnCompatibleLSTMCell::step(const Tensor& inputs, const CellState& state) {
  const std::int64_t units = num_units();
  const Tensor joined = ops::concat({inputs, state[1]}, 1);
  const std::vector<Tensor> gates =
      ops::split(ops::dense(joined, kernel_.read(), bias_.read()), 1, {units, units, units, units});
  const Tensor in = ops::sigmoid(gates[0]), memory = ops::tanh(gates[1]);
  const Tensor forget = ops::sigmoid(gates[2]), out = ops::sigmoid(gates[3]);
  const Tensor c = ops::add(ops::multiply(forget, state[0]), ops::multiply(in, memory));
  Tensor h = ops::multiply(out, ops::tanh(c));
  if (projecting()) h = ops::matmul(h, projection_.read());
  return {h, {c, h}};
}

std::shared_ptr<Layer> CudnnCompatibleLSTMCell::copy() const {
  auto made = std::make_shared<CudnnCompatibleLSTMCell>(options());
  made->copy_cell(*this);
  made->kernel_ = kernel_;
  made->bias_ = bias_;
  made->projection_ = projection_;
  return made;
}

CudnnCompatibleGRUCell::CudnnCompatibleGRUCell(CompatibleCellOptions options)
    : VariableCell("CudnnCompatibleGRUCell", "cudnn_compatible_gru_cell", std::move(options)) {}

std::shared_ptr<CudnnCompatibleGRUCell> CudnnCompatibleGRUCell::from_config(
    CompatibleCellOptions config) {
  return std::make_shared<CudnnCompatibleGRUCell>(std::move(config));
}

void CudnnCompatibleGRUCell::make_variables(std::int64_t input_size) {
  const std::int64_t units = num_units();
  gates_kernel_ = add_kernel("gates/kernel", {input_size + units, 2 * units});
  gates_bias_ = add_bias("gates/bias", 2 * units, 1.0);
  input_kernel_ = add_kernel("candidate/input_projection/kernel", {input_size, units});
  input_bias_ = add_bias("candidate/input_projection/bias", units);
  hidden_kernel_ = add_kernel("candidate/hidden_projection/kernel", {units, units});
  hidden_bias_ = add_bias("candidate/hidden_projection/bias", units);
}

CellResult CudnnCompatibleGRUCell::step(const Tensor& inputs, const CellState& state) {
  const std::int64_t units = num_units();
  const Tensor& before = state[0];
  const Tensor joined = ops::concat({inputs, before}, 1);
  const std::vector<Tensor> gates =
      ops::split(ops::sigmoid(ops::dense(joined, gates_kernel_.read(), gates_bias_.read())), 1,
                 {units, units});
  const Tensor &reset = gates[0], &update = gates[1];
  const Tensor from_input = ops::dense(inputs, input_kernel_.read(), input_bias_.read());
  const Tensor from_hidden = ops::dense(before, hidden_kernel_.read(), hidden_bias_.read());
  const Tensor fresh = ops::tanh(ops::add(from_input, ops::multiply(reset, from_hidden)));
  const Tensor keep_fresh = ops::add_scalar(ops::negate(update), 1.0);
  const Tensor h = ops::add(ops::multiply(keep_fresh, fresh), ops::multiply(update, before));
  return {h, {h}};
}

std::shared_ptr<Layer> CudnnCompatibleGRUCell::copy() const {
  auto made = std::make_shared<CudnnCompatibleGRUCell>(options());
  made->copy_cell(*this);
  made->gates_kernel_ = gates_kernel_;
  made->gates_bias_ = gates_bias_;
  made->input_kernel_ = input_kernel_;
  made->input_bias_ = input_bias_;
  made->hidden_kernel_ = hidden_kernel_;
  made->hidden_bias_ = hidden_bias_;
  return made;
}

BasicRNNCell::BasicRNNCell(CompatibleCellOptions options, CellFunction activation)
    : VariableCell("BasicRNNCell", "basic_rnn_cell", std::move(options)),
      activation_(activation ? std::move(activation) : CellFunction(ops::tanh)) {}

std::shared_ptr<BasicRNNCell> BasicRNNCell::from_config(CompatibleCellOptions config,
                                                        CellFunction activation) {
  return std::make_shared<BasicRNNCell>(std::move(config), std::move(activation));
}

void BasicRNNCell::make_variables(std::int64_t input_size) {
  kernel_ = add_kernel("kernel", {input_size + num_units(), num_units()});
  bias_ = add_bias("bias", num_units());
}

CellResult BasicRNNCell::step(const Tensor& inputs, const CellState& state) {
  const Tensor joined = ops::concat({inputs, state[0]}, 1);
  const Tensor h = activation_(ops::dense(joined, kernel_.read(), bias_.read()));
  return {h, {h}};
}

std::shared_ptr<Layer> BasicRNNCell::copy() const {
  auto made = std::make_shared<BasicRNNCell>(options(), activation_);
  made->copy_cell(*this);
  made->kernel_ = kernel_;
  made->bias_ = bias_;
  return made;
}

}  // namespace openrnn
