#include "openrnn/spec_fields.h"
#include "spec/words.h"

namespace openrnn {
namespace {

constexpr std::array kLstmGates = {Gate::kI, Gate::kF, Gate::kC, Gate::kO};
constexpr std::array kGruGates = {Gate::kR, Gate::kZ, Gate::kN};
constexpr std::array kPlainGates = {Gate::kH};

}  // namespace

std::string_view to_string(RnnMode mode) { return spec::word(mode); }
std::string_view to_string(InputMode mode) { return spec::word(mode); }
std::string_view to_string(Direction direction) { return spec::word(direction); }
std::string_view to_string(Math math) { return spec::word(math); }
std::string_view to_string(WeightsDType dtype) { return spec::word(dtype); }
std::string_view to_string(LayerNorm norm) { return spec::word(norm); }
std::string_view to_string(LayerNormCell norm) { return spec::word(norm); }
std::string_view to_string(Gate gate) { return spec::word(gate); }

RnnMode parse_rnn_mode(std::string_view name) { return spec::parse_word<RnnMode>(name); }
InputMode parse_input_mode(std::string_view name) { return spec::parse_word<InputMode>(name); }
Direction parse_direction(std::string_view name) { return spec::parse_word<Direction>(name); }
Math parse_math(std::string_view name) { return spec::parse_word<Math>(name); }
WeightsDType parse_weights_dtype(std::string_view name) {
  return spec::parse_word<WeightsDType>(name);
}
LayerNorm parse_layer_norm(std::string_view name) { return spec::parse_word<LayerNorm>(name); }
LayerNormCell parse_layer_norm_cell(std::string_view name) {
  return spec::parse_word<LayerNormCell>(name);
}

std::span<const Gate> gates_of(RnnMode mode) {
  switch (mode) {
    case RnnMode::kLstm:
      return kLstmGates;
    case RnnMode::kGru:
      return kGruGates;
    default:
      return kPlainGates;
  }
}

bool RnnSpec::skips_input() const {
  return input_mode == InputMode::kSkipInput ||
         (input_mode == InputMode::kAutoSelect && input_size == num_units);
}

CellActivation RnnSpec::candidate_activation() const {
  const bool is_relu = mode == RnnMode::kRnnRelu;
  return activation.value_or(
      CellActivation{is_relu ? CellActivationKind::kRelu : CellActivationKind::kTanh});
}

CellActivation RnnSpec::gate_activation() const {
  return recurrent_activation.value_or(CellActivation{CellActivationKind::kSigmoid});
}

CellActivation RnnSpec::cell_activation() const {
  return output_activation.value_or(CellActivation{CellActivationKind::kTanh});
}

bool RnnSpec::has_cudnn_step() const {
  const CellActivationKind candidate = candidate_activation().kind;
  const bool projected_gru = mode == RnnMode::kGru && projecting();
  const bool is_plain = mode == RnnMode::kRnnRelu || mode == RnnMode::kRnnTanh;
  return !projected_gru &&
         (candidate == CellActivationKind::kTanh ||
          (is_plain && candidate == CellActivationKind::kRelu)) &&
         gate_activation().kind == CellActivationKind::kSigmoid &&
         cell_activation().kind == CellActivationKind::kTanh && reset_after && !use_peepholes &&
         !coupled_gates && !gate_clip && !normalizes() && !zones_out() &&
         training.recurrent_dropout == 0.0;
}

void RnnSpec::validate() const {
  for (const RnnField& field : rnn_fields()) {
    if (field.check) field.check(*this);
  }
}

std::string describe(const RnnSpec& spec) {
  std::string text = message(to_string(spec.mode), ", ", spec.num_layers,
                             spec.num_layers == 1 ? " layer, " : " layers, ", spec.num_units,
                             " units, input size ", spec.input_size, ", ",
                             to_string(spec.direction), ", ", dtype_name(spec.dtype));
  if (spec.skips_input()) text += ", skip_input";
  if (spec.projecting()) text += message(", projection to ", spec.num_proj);
  if (spec.compute.math != Math::kFloat32) {
    text += message(", math ", to_string(spec.compute.math));
  }
  if (spec.compute.weights_dtype != WeightsDType::kNone) {
    text += message(", weights stored as ", to_string(spec.compute.weights_dtype));
  }
  for (const RnnField& field : rnn_fields()) {
    if (field.always || !field.stands_in(spec)) continue;
    text += message(", ", field.name, " ", to_string(field.get(spec)));
  }
  return text;
}

}  // namespace openrnn
