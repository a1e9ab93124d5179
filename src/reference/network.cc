#include "reference/network.h"

#include <algorithm>
#include <cmath>

#include "reference/number.h"

namespace openrnn::reference {
namespace {

std::size_t gate_count(RnnMode mode) {
  if (mode == RnnMode::kLstm) return 4;
  return mode == RnnMode::kGru ? 3 : 1;
}

bool skips(const RnnSpec& spec) {
  const bool equal = spec.input_size == spec.num_units;
  return spec.input_mode == InputMode::kSkipInput ||
         (spec.input_mode == InputMode::kAutoSelect && equal);
}

// One matrix by rows, each with a scale of its own.
void store_as_int8(double* matrix, std::size_t rows, std::size_t width) {
  for (std::size_t u = 0; u < rows; ++u) {
    double* row = matrix + u * width;
    float largest = 0.0F;
    for (std::size_t k = 0; k < width; ++k) {
      largest = std::max(largest, std::abs(static_cast<float>(row[k])));
    }
    const float least = std::numeric_limits<float>::min();
    const float scale = largest / 127.0F < least ? 1.0F : largest / 127.0F;
    for (std::size_t k = 0; k < width; ++k) {
      const float q = std::nearbyint(static_cast<float>(row[k]) / scale);
      row[k] = static_cast<double>(q) * static_cast<double>(scale);
    }
  }
}

void store_matrix(const Network& net, double* matrix, std::size_t rows, std::size_t width) {
  if (net.weights == WeightsDType::kInt8) return store_as_int8(matrix, rows, width);
  for (double* w = matrix; w != matrix + rows * width; ++w) {
    if (net.math == Math::kBf16) *w = as_bf16(*w);
    if (net.weights == WeightsDType::kFloat16) *w = static_cast<double>(to_float(to_half(*w)));
    if (net.weights == WeightsDType::kBfloat16) *w = nearest_bf16(*w);
  }
}

// All weights: per pseudo-layer the input matrices, the recurrent matrices, the projection.
void place_weights(const RnnSpec& spec, Network& net) {
  for (std::size_t p = 0; p < net.layers * net.dirs; ++p) {
    PseudoLayer at;
    const bool first = p < net.dirs;
    at.input = first ? static_cast<std::size_t>(spec.input_size) : net.dirs * net.hidden;
    at.skips = first && skips(spec);
    for (std::size_t k = 0; k < net.gates; ++k) {
      at.w[k] = net.size;
      net.size += at.skips ? 0 : net.units * at.input;
    }
    for (std::size_t k = 0; k < net.gates; ++k) {
      at.r[k] = net.size;
      net.size += net.units * net.hidden;
    }
    at.wp = net.size;
    net.size += net.projects ? net.hidden * net.units : 0;
    net.pseudo.push_back(at);
  }
}

// Then all biases: per pseudo-layer those of the input side, those of the recurrent side.
void place_vectors(Network& net) {
  for (PseudoLayer& at : net.pseudo) {
    for (std::size_t k = 0; net.input_bias && k < net.gates; ++k, net.size += net.units) {
      at.bw[k] = net.size;
    }
    for (std::size_t k = 0; net.recurrent_bias && k < net.gates; ++k, net.size += net.units) {
      at.br[k] = net.size;
    }
  }
  // Then all peepholes.
  for (PseudoLayer& at : net.pseudo) {
    for (const std::size_t k : {kI, kF, kO}) {
      if (!net.peepholes) break;
      at.peephole[k] = net.size;
      net.size += net.units;
    }
  }
}

// Then all gains of gates, and all gains and biases of cells.
void place_norms(Network& net) {
  for (PseudoLayer& at : net.pseudo) {
    const bool both = normalizes_products(net), any = net.norm != LayerNorm::kNone;
    for (std::size_t k = 0; any && k < net.gates; ++k, net.size += net.units) {
      at.input_gain[k] = net.size;
    }
    for (std::size_t k = 0; both && k < net.gates; ++k, net.size += net.units) {
      at.recurrent_gain[k] = net.size;
    }
  }
  for (PseudoLayer& at : net.pseudo) {
    if (net.cell_norm == LayerNormCell::kNone) break;
    at.cell_gain = net.size;
    at.cell_bias = net.size + net.units;
    net.size += 2 * net.units;
  }
}

}  // namespace

void store_weights(const Network& net, std::vector<double>& params) {
  for (const PseudoLayer& at : net.pseudo) {
    for (std::size_t k = 0; k < net.gates; ++k) {
      if (!at.skips) store_matrix(net, params.data() + at.w[k], net.units, at.input);
      store_matrix(net, params.data() + at.r[k], net.units, net.hidden);
    }
    if (net.projects) store_matrix(net, params.data() + at.wp, net.hidden, net.units);
  }
}

Network make_network(const RnnSpec& spec) {
  Network net;
  net.mode = spec.mode;
  net.dtype = spec.dtype;
  net.math = spec.compute.math;
  net.weights = spec.compute.weights_dtype;
  net.layers = static_cast<std::size_t>(spec.num_layers);
  net.dirs = spec.direction == Direction::kBidirectional ? 2 : 1;
  net.gates = gate_count(spec.mode);
  net.units = static_cast<std::size_t>(spec.num_units);
  net.projects = spec.num_proj > 0 && spec.num_proj < spec.num_units;
  net.has_cell = spec.mode == RnnMode::kLstm || (spec.mode == RnnMode::kGru && net.projects);
  net.hidden = net.projects ? static_cast<std::size_t>(spec.num_proj) : net.units;
  net.clip = spec.cell_clip;
  net.proj_clip = spec.proj_clip;
  net.gate_clip = spec.gate_clip;
  net.forget_bias = spec.forget_bias;
  const bool relu = spec.mode == RnnMode::kRnnRelu;
  net.candidate_function = spec.activation.value_or(
      CellActivation{relu ? CellActivationKind::kRelu : CellActivationKind::kTanh});
  net.gate_function =
      spec.recurrent_activation.value_or(CellActivation{CellActivationKind::kSigmoid});
  net.cell_function = spec.output_activation.value_or(CellActivation{CellActivationKind::kTanh});
  net.reset_after = spec.reset_after;
  net.peepholes = spec.use_peepholes;
  net.coupled = spec.coupled_gates;
  net.input_bias = spec.use_bias;
  net.recurrent_bias = spec.use_bias && !spec.single_bias;
  net.norm = spec.layer_norm;
  net.cell_norm = spec.layer_norm_cell;
  net.norm_epsilon = spec.layer_norm_epsilon;
  net.dropout = spec.training.dropout;
  net.recurrent_dropout = spec.training.recurrent_dropout;
  net.drops_candidate = spec.training.recurrent_dropout_form == RecurrentDropoutForm::kCandidate;
  net.zoneout = spec.zoneout;
  net.zoneout_cell = spec.zoneout_cell;

  place_weights(spec, net);
  place_vectors(net);
  place_norms(net);
  return net;
}

}  // namespace openrnn::reference
