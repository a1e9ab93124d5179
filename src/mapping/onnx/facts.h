// The names and orders of ONNX's recurrent operators.
#pragma once

#include "openrnn/formats_onnx.h"
#include "openrnn/spec.h"

namespace openrnn::mapping {

/// RNN, LSTM or GRU.
struct OnnxOperator {
  std::string_view op_type;
  /// The order of their blocks in W and R, and in each half of B: first all of the input's side.
  std::span<const Gate> gates;
  /// The same in P.
  std::span<const Gate> peepholes;
  /// How many functions a direction lists in `activations`: of gates, candidate and cell.
  std::size_t activations;
};

/// Null for another operator, or one of another domain.
const OnnxOperator* find_recurrent(const OnnxNode& node);
const OnnxOperator& recurrent_of(RnnMode mode);

/// A function of a cell as ONNX has it.
struct OnnxActivation {
  std::string_view name;
  CellActivationKind kind;
  bool takes_alpha, takes_beta;
  /// Whether ONNX's text says what they are when none are given.
  bool has_defaults;
};
/// In any case of letters; null for an unknown one.
const OnnxActivation* find_onnx_activation(std::string_view name);
const OnnxActivation& onnx_activation_of(CellActivationKind kind);

}  // namespace openrnn::mapping
