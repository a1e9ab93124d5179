#include "engine/tangent.h"

#include "base/message.h"
#include "openrnn/engine.h"

namespace openrnn {
namespace {

bool is_known(const std::optional<CellActivation>& function) {
  return !function || function->kind <= CellActivationKind::kSoftplus;
}

}  // namespace

void Engine::tangent(const TangentArgs& args) const {
  throw UnsupportedError(message("[tangent] engine '", name(),
                                 "' has no second derivatives of such a ",
                                 to_string(args.spec.mode), ", expected engine 'reference'"));
}

bool tangents_know(const RnnSpec& spec) {
  switch (spec.mode) {
    case RnnMode::kLstm:
    case RnnMode::kGru:
    case RnnMode::kRnnTanh:
    case RnnMode::kRnnRelu:
      break;
    default:
      return false;
  }
  const bool functions = is_known(spec.activation) && is_known(spec.recurrent_activation) &&
                         is_known(spec.output_activation);
  if (!functions) return false;
  // What is left when all that is known has its default: options that came later.
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
  rest.reset_after = none.reset_after;
  rest.activation = none.activation;
  rest.recurrent_activation = none.recurrent_activation;
  rest.output_activation = none.output_activation;
  rest.use_peepholes = none.use_peepholes;
  rest.coupled_gates = none.coupled_gates;
  rest.proj_clip = none.proj_clip;
  rest.gate_clip = none.gate_clip;
  rest.use_bias = none.use_bias;
  rest.single_bias = none.single_bias;
  rest.layer_norm = none.layer_norm;
  rest.layer_norm_cell = none.layer_norm_cell;
  rest.layer_norm_epsilon = none.layer_norm_epsilon;
  rest.training.dropout = none.training.dropout;
  rest.training.seed = none.training.seed;
  rest.compute = none.compute;
  rest.zoneout = none.zoneout;
  rest.zoneout_cell = none.zoneout_cell;
  rest.training.recurrent_dropout = none.training.recurrent_dropout;
  rest.training.recurrent_dropout_form = none.training.recurrent_dropout_form;
  // Operations apply these around the call.
  rest.training.input_dropout = none.training.input_dropout;
  rest.training.output_dropout = none.training.output_dropout;
  rest.training.drop_connect = none.training.drop_connect;
  return rest == none;
}

}  // namespace openrnn
