// tf.contrib.rnn's LayerNormBasicLSTMCell.
#include <cmath>
#include <typeinfo>

#include "base/message.h"
#include "cells/tensorflow.h"
#include "graph/graph_state.h"
#include "openrnn/cells_layer_norm.h"
#include "spec/tensorflow.h"

namespace openrnn {
namespace {

// In the order of the kernel's blocks, then the cell's.
constexpr const char* kScopes[] = {"input", "transform", "forget", "output", "state"};

}  // namespace

LayerNormBasicLSTMCell::LayerNormBasicLSTMCell(LayerNormBasicLSTMCellOptions options)
    : VariableCell("LayerNormBasicLSTMCell", "layer_norm_basic_lstm_cell",
                   cells::variables_of(options)),
      options_(std::move(options)) {
  const double keep = options_.dropout_keep_prob;
  if (!(keep > 0.0 && keep <= 1.0)) {
    throw ArgumentError(message("[LayerNormBasicLSTMCell] dropout_keep_prob ", keep,
                                ", expected above 0 and at most 1"));
  }
  if (keep < 1.0) {
    dropout_ = ops::DropoutState(Graph::current().op_seeds(options_.dropout_prob_seed));
  }
}

std::shared_ptr<LayerNormBasicLSTMCell> LayerNormBasicLSTMCell::from_config(
    LayerNormBasicLSTMCellOptions config) {
  return std::make_shared<LayerNormBasicLSTMCell>(std::move(config));
}

LayerNormBasicLSTMCellOptions LayerNormBasicLSTMCell::get_config() const {
  LayerNormBasicLSTMCellOptions config = options_;
  config.name = name();
  return config;
}

void LayerNormBasicLSTMCell::make_variables(std::int64_t input_size) {
  kernel_ = add_kernel("kernel", {input_size + num_units(), 4 * num_units()});
  if (!options_.layer_norm) {
    bias_ = add_bias("bias", 4 * num_units());
    return;
  }
  for (std::size_t n = 0; n < kNorms; ++n) {
    norms_[n].gamma = add_bias(message(kScopes[n], "/gamma"), num_units(), options_.norm_gain);
    norms_[n].beta = add_bias(message(kScopes[n], "/beta"), num_units(), options_.norm_shift);
  }
}

double LayerNormBasicLSTMCell::epsilon() const { return spec::layer_norm_basic_epsilon(dtype()); }

Tensor LayerNormBasicLSTMCell::normalized(const Tensor& x, const Norm& norm) const {
  const std::int64_t units = num_units();
  const auto ones = [&](const Shape& shape) {
    return Tensor(DeviceArray::full(device(), dtype(), shape, 1.0));
  };
  const Tensor down = ones({units, 1}), across = ones({1, units});
  const auto mean = [&](const Tensor& values) {
    return ops::scale(ops::matmul(values, down), 1.0 / static_cast<double>(units));
  };
  const Tensor moved = ops::subtract(x, ops::matmul(mean(x), across));
  const Tensor deviation = ops::sqrt(ops::add_scalar(mean(ops::square(moved)), epsilon()));
  const Tensor hat = ops::divide(moved, ops::matmul(deviation, across));
  return ops::add_row(cells::scale_columns(hat, norm.gamma.read()), norm.beta.read());
}

Tensor LayerNormBasicLSTMCell::dropped(const Tensor& memory) {
  // Where only shapes are asked for, no mask is used up.
  if (memory.is_symbolic() || memory.shape()[0] == 0) return memory;
  if (options_.dropout_keep_prob == 1.0) return memory;
  return ops::next_dropout(memory, 1.0 - options_.dropout_keep_prob, dropout_);
}

CellResult LayerNormBasicLSTMCell::step(const Tensor& inputs, const CellState& state) {
  const std::int64_t units = num_units();
  const Tensor joined = ops::concat({inputs, state[1]}, 1);
  const Tensor product = options_.layer_norm ? ops::matmul(joined, kernel_.read())
                                             : ops::dense(joined, kernel_.read(), bias_.read());
  std::vector<Tensor> sums = ops::split(product, 1, {units, units, units, units});
  for (std::size_t n = 0; options_.layer_norm && n < sums.size(); ++n) {
    sums[n] = normalized(sums[n], norms_[n]);
  }
  const CellFunction activation = cells::or_tanh(options_.activation);
  const Tensor forget = ops::sigmoid(ops::add_scalar(sums[2], options_.forget_bias));
  Tensor c = ops::add(ops::multiply(state[0], forget),
                      ops::multiply(ops::sigmoid(sums[0]), dropped(activation(sums[1]))));
  if (options_.layer_norm) c = normalized(c, norms_[4]);
  const Tensor h = ops::multiply(activation(c), ops::sigmoid(sums[3]));
  return {h, {c, h}};
}

bool LayerNormBasicLSTMCell::is_network() const {
  return typeid(*this) == typeid(LayerNormBasicLSTMCell) && !options_.activation &&
         options_.dropout_keep_prob == 1.0 && std::isfinite(options_.forget_bias);
}

CellNetwork LayerNormBasicLSTMCell::network() const {
  const std::int64_t units = num_units();
  RnnSpec spec{.num_units = units, .dtype = dtype()};
  spec.input_size = kernel_.shape()[0] - units;
  spec.single_bias = true;
  spec.forget_bias = options_.forget_bias;
  const auto gates = [units](const Tensor& blocks) {
    return ops::concat(cells::in_gate_order(ops::split(blocks, 0, {units, units, units, units})),
                       0);
  };
  std::vector<Tensor> others;
  if (options_.layer_norm) {
    spec.layer_norm = LayerNorm::kGates;
    spec.layer_norm_cell = LayerNormCell::kCarried;
    spec.layer_norm_epsilon = epsilon();
    for (Variable Norm::*const part : {&Norm::beta, &Norm::gamma}) {
      std::vector<Tensor> of_gates;
      for (std::size_t n = 0; n < 4; ++n) of_gates.push_back((norms_[n].*part).read());
      others.push_back(ops::concat(cells::in_gate_order(of_gates), 0));
    }
    others.push_back(norms_[4].gamma.read());
    others.push_back(norms_[4].beta.read());
  } else {
    others.push_back(gates(bias_.read()));
  }
  const Tensor weights = gates(ops::transpose_leading(kernel_.read()));
  return {spec, cells::opaque_params(weights, units, others)};
}

std::shared_ptr<Layer> LayerNormBasicLSTMCell::copy() const {
  // A new one would take a seed of its own.
  const graph::Rollback seeds(Graph::current());
  auto made = std::make_shared<LayerNormBasicLSTMCell>(options_);
  made->copy_cell(*this);
  made->kernel_ = kernel_;
  made->bias_ = bias_;
  made->norms_ = norms_;
  made->dropout_ = dropout_;
  return made;
}

}  // namespace openrnn
