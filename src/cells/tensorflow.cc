// TensorFlow 1's cells: BasicLSTMCell, LSTMCell, GRUCell.
#include "cells/tensorflow.h"

#include <cmath>
#include <typeinfo>

#include "base/message.h"

namespace openrnn {
namespace {

using cells::in_gate_order;
using cells::opaque_params;
using cells::or_tanh;
using cells::scale_columns;
using cells::variables_of;

LSTMCellOptions lstm_options(BasicLSTMCellOptions options) {
  return {.num_units = options.num_units,
          .forget_bias = options.forget_bias,
          .activation = std::move(options.activation),
          .dtype = options.dtype,
          .kernel_initializer = std::move(options.kernel_initializer),
          .seed = options.seed,
          .name = std::move(options.name),
          .device = options.device,
          .reuse = options.reuse};
}

Tensor clipped(const Tensor& x, std::optional<double> bound) {
  return bound ? ops::clip(x, -*bound, *bound) : x;
}

}  // namespace

LSTMCell::LSTMCell(Names names, LSTMCellOptions options)
    : VariableCell(names.of_class, names.of_cell, variables_of(options)),
      options_(std::move(options)) {
  const auto check = [this](const char* name, std::optional<double> bound) {
    if (bound && !(*bound >= 0.0)) {
      throw ArgumentError(
          message("[", call_name(), "] ", name, " ", *bound, ", expected 0 or more"));
    }
  };
  check("cell_clip", options_.cell_clip);
  check("proj_clip", options_.proj_clip);
  if (options_.num_proj < 0) {
    throw ArgumentError(message("[", call_name(), "] num_proj ", options_.num_proj,
                                ", expected 0 for none, or more"));
  }
}

LSTMCell::LSTMCell(LSTMCellOptions options)
    : LSTMCell(Names{"LSTMCell", "lstm_cell"}, std::move(options)) {}

std::shared_ptr<LSTMCell> LSTMCell::from_config(LSTMCellOptions config) {
  return std::make_shared<LSTMCell>(std::move(config));
}

LSTMCellOptions LSTMCell::get_config() const {
  LSTMCellOptions config = options_;
  config.name = name();
  return config;
}

std::int64_t LSTMCell::output_size() const {
  return options_.num_proj > 0 ? options_.num_proj : num_units();
}

void LSTMCell::make_variables(std::int64_t input_size) {
  kernel_ = add_kernel("kernel", {input_size + output_size(), 4 * num_units()});
  bias_ = add_bias("bias", 4 * num_units());
  if (options_.use_peepholes) {
    forget_diagonal_ = add_kernel("w_f_diag", {num_units()});
    input_diagonal_ = add_kernel("w_i_diag", {num_units()});
    output_diagonal_ = add_kernel("w_o_diag", {num_units()});
  }
  if (options_.num_proj > 0) {
    projection_ = add_kernel("projection/kernel", {num_units(), options_.num_proj});
  }
}

CellResult LSTMCell::step(const Tensor& inputs, const CellState& state) {
  const std::int64_t units = num_units();
  const Tensor joined = ops::concat({inputs, state[1]}, 1);
  const std::vector<Tensor> sums =
      ops::split(ops::dense(joined, kernel_.read(), bias_.read()), 1, {units, units, units, units});
  const auto gate = [this](const Tensor& sum, const Variable& diagonal, const Tensor& cell) {
    if (!options_.use_peepholes) return ops::sigmoid(sum);
    return ops::sigmoid(ops::add(sum, scale_columns(cell, diagonal.read())));
  };
  const CellFunction activation = or_tanh(options_.activation);
  const Tensor in = gate(sums[0], input_diagonal_, state[0]);
  const Tensor forget =
      gate(ops::add_scalar(sums[2], options_.forget_bias), forget_diagonal_, state[0]);
  const Tensor c =
      clipped(ops::add(ops::multiply(forget, state[0]), ops::multiply(in, activation(sums[1]))),
              options_.cell_clip);
  Tensor h = ops::multiply(gate(sums[3], output_diagonal_, c), activation(c));
  if (options_.num_proj > 0) {
    h = clipped(ops::matmul(h, projection_.read()), options_.proj_clip);
  }
  return {h, {c, h}};
}

bool LSTMCell::is_network() const {
  const std::type_info& type = typeid(*this);
  const auto bounds = [](std::optional<double> bound) {
    return !bound || (*bound > 0.0 && std::isfinite(*bound));
  };
  return (type == typeid(LSTMCell) || type == typeid(BasicLSTMCell)) && !options_.activation &&
         options_.num_proj < num_units() && bounds(options_.cell_clip) &&
         bounds(options_.proj_clip) && std::isfinite(options_.forget_bias);
}

CellNetwork LSTMCell::network() const {
  const std::int64_t units = num_units();
  RnnSpec spec{.num_units = units, .dtype = dtype(), .num_proj = options_.num_proj};
  spec.input_size = kernel_.shape()[0] - output_size();
  spec.single_bias = true;
  spec.forget_bias = options_.forget_bias;
  spec.use_peepholes = options_.use_peepholes;
  const auto within = [](std::optional<double> bound) {
    return bound ? std::optional(std::array{-*bound, *bound}) : std::nullopt;
  };
  spec.cell_clip = within(options_.cell_clip);
  if (options_.num_proj > 0) spec.proj_clip = within(options_.proj_clip);
  const auto gates = [units](const Tensor& blocks) {
    return ops::concat(in_gate_order(ops::split(blocks, 0, {units, units, units, units})), 0);
  };
  std::vector<Tensor> others;
  if (options_.num_proj > 0) others.push_back(ops::transpose_leading(projection_.read()));
  others.push_back(gates(bias_.read()));
  if (options_.use_peepholes) {
    for (const Variable& each : {input_diagonal_, forget_diagonal_, output_diagonal_}) {
      others.push_back(each.read());
    }
  }
  const Tensor weights = gates(ops::transpose_leading(kernel_.read()));
  return {spec, opaque_params(weights, output_size(), others)};
}

void LSTMCell::copy_lstm(const LSTMCell& other) {
  copy_cell(other);
  kernel_ = other.kernel_;
  bias_ = other.bias_;
  forget_diagonal_ = other.forget_diagonal_;
  input_diagonal_ = other.input_diagonal_;
  output_diagonal_ = other.output_diagonal_;
  projection_ = other.projection_;
}

std::shared_ptr<Layer> LSTMCell::copy() const {
  auto made = std::make_shared<LSTMCell>(options_);
  made->copy_lstm(*this);
  return made;
}

BasicLSTMCell::BasicLSTMCell(BasicLSTMCellOptions options)
    : LSTMCell(Names{"BasicLSTMCell", "basic_lstm_cell"}, lstm_options(std::move(options))) {}

std::shared_ptr<BasicLSTMCell> BasicLSTMCell::from_config(BasicLSTMCellOptions config) {
  return std::make_shared<BasicLSTMCell>(std::move(config));
}

BasicLSTMCellOptions BasicLSTMCell::get_config() const {
  const LSTMCellOptions all = LSTMCell::get_config();
  return {.num_units = all.num_units,
          .forget_bias = all.forget_bias,
          .activation = all.activation,
          .dtype = all.dtype,
          .kernel_initializer = all.kernel_initializer,
          .seed = all.seed,
          .name = all.name,
          .device = all.device,
          .reuse = all.reuse};
}

std::shared_ptr<Layer> BasicLSTMCell::copy() const {
  BasicLSTMCellOptions given = get_config();
  given.name = options().name;
  auto made = std::make_shared<BasicLSTMCell>(std::move(given));
  made->copy_lstm(*this);
  return made;
}

GRUCell::GRUCell(GRUCellOptions options)
    : VariableCell("GRUCell", "gru_cell", variables_of(options)), options_(std::move(options)) {}

std::shared_ptr<GRUCell> GRUCell::from_config(GRUCellOptions config) {
  return std::make_shared<GRUCell>(std::move(config));
}

GRUCellOptions GRUCell::get_config() const {
  GRUCellOptions config = options_;
  config.name = name();
  return config;
}

void GRUCell::make_variables(std::int64_t input_size) {
  const std::int64_t units = num_units();
  const Initializer& given = options_.bias_initializer;
  gates_kernel_ = add_kernel("gates/kernel", {input_size + units, 2 * units});
  gates_bias_ = add_bias("gates/bias", 2 * units, given ? given : constant_initializer(1.0));
  candidate_kernel_ = add_kernel("candidate/kernel", {input_size + units, units});
  candidate_bias_ = add_bias("candidate/bias", units, given ? given : constant_initializer(0.0));
}

CellResult GRUCell::step(const Tensor& inputs, const CellState& state) {
  const std::int64_t units = num_units();
  const Tensor& before = state[0];
  const Tensor joined = ops::concat({inputs, before}, 1);
  const std::vector<Tensor> gates =
      ops::split(ops::sigmoid(ops::dense(joined, gates_kernel_.read(), gates_bias_.read())), 1,
                 {units, units});
  const Tensor &reset = gates[0], &update = gates[1];
  const Tensor kept = ops::concat({inputs, ops::multiply(reset, before)}, 1);
  const Tensor fresh = or_tanh(options_.activation)(
      ops::dense(kept, candidate_kernel_.read(), candidate_bias_.read()));
  const Tensor keep_fresh = ops::add_scalar(ops::negate(update), 1.0);
  const Tensor h = ops::add(ops::multiply(update, before), ops::multiply(keep_fresh, fresh));
  return {h, {h}};
}

bool GRUCell::is_network() const {
  return typeid(*this) == typeid(GRUCell) && !options_.activation;
}

CellNetwork GRUCell::network() const {
  RnnSpec spec{.mode = RnnMode::kGru, .num_units = num_units(), .dtype = dtype()};
  spec.input_size = gates_kernel_.shape()[0] - num_units();
  spec.single_bias = true;
  spec.reset_after = false;
  const Tensor weights = ops::concat({ops::transpose_leading(gates_kernel_.read()),
                                      ops::transpose_leading(candidate_kernel_.read())},
                                     0);
  return {spec, opaque_params(weights, num_units(), {gates_bias_.read(), candidate_bias_.read()})};
}

std::shared_ptr<Layer> GRUCell::copy() const {
  auto made = std::make_shared<GRUCell>(options_);
  made->copy_cell(*this);
  made->gates_kernel_ = gates_kernel_;
  made->gates_bias_ = gates_bias_;
  made->candidate_kernel_ = candidate_kernel_;
  made->candidate_bias_ = candidate_bias_;
  return made;
}

}  // namespace openrnn
