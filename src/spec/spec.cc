#include "openrnn/spec_fields.h"
#include "spec/words.h"

namespace openrnn {
namespace {

constexpr std::array kLstmGates = {Gate::kI, Gate::kF, Gate::kC, Gate::kO};
constexpr std::array kGruGates = {Gate::kR, Gate::kZ, Gate::kN};
constexpr std::array kPlainGates = {Gate::kH};

// What no step sees, and what cuDNN's have, at its default: what is left are options of steps,
// those that came later among them.
RnnSpec without_cudnn_s(const RnnSpec& spec) {
  const RnnSpec none;
  RnnSpec rest = spec;
  rest.mode = none.mode;
  rest.num_layers = none.num_layers;
  rest.num_units = none.num_units;
  rest.input_size = none.input_size;
  rest.input_mode = none.input_mode;
  rest.direction = none.direction;
  rest.dtype = none.dtype;
  rest.num_proj = none.num_proj;
  rest.cell_clip = none.cell_clip;
  rest.forget_bias = none.forget_bias;
  rest.activation = none.activation;
  rest.recurrent_activation = none.recurrent_activation;
  rest.output_activation = none.output_activation;
  rest.proj_clip = none.proj_clip;
  rest.use_bias = none.use_bias;
  rest.single_bias = none.single_bias;
  rest.training.dropout = none.training.dropout;
  rest.training.seed = none.training.seed;
  rest.training.input_dropout = none.training.input_dropout;
  rest.training.output_dropout = none.training.output_dropout;
  rest.training.drop_connect = none.training.drop_connect;
  rest.training.recurrent_dropout_form = none.training.recurrent_dropout_form;
  rest.compute = none.compute;
  return rest;
}

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
  const bool is_plain = mode == RnnMode::kRnnRelu || mode == RnnMode::kRnnTanh;
  const bool functions = (candidate == CellActivationKind::kTanh ||
                          (is_plain && candidate == CellActivationKind::kRelu)) &&
                         gate_activation().kind == CellActivationKind::kSigmoid &&
                         cell_activation().kind == CellActivationKind::kTanh;
  const bool projected_gru = mode == RnnMode::kGru && projecting();
  if (!functions || projected_gru) return false;
  return without_cudnn_s(*this) == RnnSpec{};
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
