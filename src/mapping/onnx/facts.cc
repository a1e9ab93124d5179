#include "mapping/onnx/facts.h"

#include <algorithm>
#include <cctype>

namespace openrnn::mapping {

namespace {

constexpr Gate kGatesOfRnn[] = {Gate::kH};
constexpr Gate kGatesOfLstm[] = {Gate::kI, Gate::kO, Gate::kF, Gate::kC};
constexpr Gate kGatesOfGru[] = {Gate::kZ, Gate::kR, Gate::kN};
constexpr Gate kPeepholesOfLstm[] = {Gate::kI, Gate::kO, Gate::kF};

constexpr OnnxOperator kOperators[] = {
    {"RNN", kGatesOfRnn, {}, 1},
    {"LSTM", kGatesOfLstm, kPeepholesOfLstm, 3},
    {"GRU", kGatesOfGru, {}, 2},
};

// ONNX has no operators Affine and ScaledTanh any more, from which their parameters would come when
// none are given; ONNX Runtime has 0 then.
constexpr OnnxActivation kActivations[] = {
    {"Sigmoid", CellActivationKind::kSigmoid, false, false, true},
    {"Tanh", CellActivationKind::kTanh, false, false, true},
    {"Relu", CellActivationKind::kRelu, false, false, true},
    {"Affine", CellActivationKind::kAffine, true, true, false},
    {"LeakyRelu", CellActivationKind::kLeakyRelu, true, false, true},
    {"ThresholdedRelu", CellActivationKind::kThresholdedRelu, true, false, true},
    {"ScaledTanh", CellActivationKind::kScaledTanh, true, true, false},
    {"HardSigmoid", CellActivationKind::kHardSigmoid, true, true, true},
    {"Elu", CellActivationKind::kElu, true, false, true},
    {"Softsign", CellActivationKind::kSoftsign, false, false, true},
    {"Softplus", CellActivationKind::kSoftplus, false, false, true},
};

bool equal_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

const OnnxOperator* find_recurrent(const OnnxNode& node) {
  if (!node.domain.empty()) return nullptr;
  for (const OnnxOperator& one : kOperators) {
    if (one.op_type == node.op_type) return &one;
  }
  return nullptr;
}

const OnnxOperator& recurrent_of(RnnMode mode) {
  return kOperators[mode == RnnMode::kLstm ? 1 : mode == RnnMode::kGru ? 2 : 0];
}

const OnnxActivation* find_onnx_activation(std::string_view name) {
  for (const OnnxActivation& one : kActivations) {
    if (equal_letters(one.name, name)) return &one;
  }
  return nullptr;
}

const OnnxActivation& onnx_activation_of(CellActivationKind kind) {
  return *std::find_if(std::begin(kActivations), std::end(kActivations),
                       [&](const OnnxActivation& one) { return one.kind == kind; });
}

}  // namespace openrnn::mapping
