// Sizes of a network and the places of its parameters, written out by hand.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "openrnn/spec.h"

namespace openrnn::reference {

// Gates in slot order.
enum LstmGate : std::size_t { kI = 0, kF = 1, kC = 2, kO = 3 };
enum GruGate : std::size_t { kR = 0, kZ = 1, kN = 2 };
enum PlainGate : std::size_t { kH = 0 };

/// One direction of one layer: where its parameters start in the opaque buffer.
struct PseudoLayer {
  std::size_t input = 0;  // width of x
  bool skips = false;     // x itself stands in place of W x
  std::array<std::size_t, 4> w{}, r{}, bw{}, br{}, peephole{};
  std::array<std::size_t, 4> input_gain{}, recurrent_gain{};  // of sums: input_gain alone
  std::size_t wp = 0, cell_gain = 0, cell_bias = 0;
};

/// A network in the terms of the equations.
struct Network {
  RnnMode mode = RnnMode::kLstm;
  DType dtype = DType::kFloat32;
  Math math = Math::kFloat32;
  WeightsDType weights = WeightsDType::kNone;
  std::size_t layers = 0, dirs = 0, gates = 0;
  std::size_t units = 0;   // U
  std::size_t hidden = 0;  // O: P when projecting, else U
  bool projects = false;
  bool has_cell = false;  // lstm, and gru with a projection
  std::optional<std::array<double, 2>> clip, proj_clip, gate_clip;
  double forget_bias = 0.0;
  CellActivation gate_function, candidate_function, cell_function;
  bool reset_after = true, peepholes = false, coupled = false;
  bool input_bias = true, recurrent_bias = true;
  LayerNorm norm = LayerNorm::kNone;
  LayerNormCell cell_norm = LayerNormCell::kNone;
  double norm_epsilon = 0.0;
  double dropout = 0.0, recurrent_dropout = 0.0, zoneout = 0.0, zoneout_cell = 0.0;
  bool drops_candidate = false;     // recurrent_dropout of the candidate, else of the state
  std::vector<PseudoLayer> pseudo;  // l0 fwd, l0 bwd, l1 fwd, ...
  std::size_t size = 0;             // elements of the opaque buffer
};

/// Whether W x and R h are normalized apart.
inline bool normalizes_products(const Network& net) {
  return net.norm == LayerNorm::kProducts || net.norm == LayerNorm::kSplitProducts;
}

Network make_network(const RnnSpec& spec);
/// An opaque buffer as the operands of products: weights rounded to bfloat16 for math 'bf16', to
/// the stored type for weights_dtype (int8: q * scale); biases unchanged.
void store_weights(const Network& net, std::vector<double>& params);

/// The function of gate k: the candidate is c, n or h.
inline const CellActivation& function_of(const Network& net, std::size_t k) {
  std::size_t candidate = kH;
  if (net.mode == RnnMode::kLstm) candidate = kC;
  if (net.mode == RnnMode::kGru) candidate = kN;
  return k == candidate ? net.candidate_function : net.gate_function;
}

}  // namespace openrnn::reference
