#include "mapping/support/options.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/spec_fields.h"

namespace openrnn::mapping {

namespace {

bool is_plain(RnnMode mode) { return mode == RnnMode::kRnnTanh || mode == RnnMode::kRnnRelu; }

}  // namespace

RnnSpec plainest(RnnSpec spec) {
  const CellActivation tanh = make_cell_activation(CellActivationKind::kTanh);
  const CellActivation relu = make_cell_activation(CellActivationKind::kRelu);
  if (is_plain(spec.mode)) {
    const CellActivation used = spec.candidate_activation();
    if (used == tanh || used == relu) {
      spec.mode = used == tanh ? RnnMode::kRnnTanh : RnnMode::kRnnRelu;
      spec.activation.reset();
    }
  } else if (spec.candidate_activation() == tanh) {
    spec.activation.reset();
  }
  if (spec.gate_activation() == make_cell_activation(CellActivationKind::kSigmoid)) {
    spec.recurrent_activation.reset();
  }
  if (spec.cell_activation() == tanh) spec.output_activation.reset();
  if (!spec.projecting()) spec.num_proj = 0;
  spec.input_mode = spec.skips_input() ? InputMode::kSkipInput : InputMode::kLinearInput;
  return spec;
}

void require_held(std::string_view call, std::string_view name, const RnnSpec& spec,
                  std::string_view format, std::span<const std::string_view> held) {
  std::string beyond;
  const auto add = [&beyond](const RnnField& field, const RnnSpec& of) {
    beyond += message(beyond.empty() ? "" : ", ", field.name, " ", to_string(field.get(of)));
  };
  for (const RnnField& field : rnn_fields()) {
    const bool kept = std::find(held.begin(), held.end(), field.name) != held.end();
    const bool set = field.group == FieldGroup::kNetwork && field.stands_in(spec) &&
                     (!field.always || field.get(spec) != field.default_value());
    constexpr std::string_view kSizes[] = {"rnn_mode",   "num_layers", "num_units",
                                           "input_size", "direction",  "dtype"};
    if (kept || !set || std::ranges::find(kSizes, field.name) != std::end(kSizes)) continue;
    add(field, spec);
  }
  if (beyond.empty()) return;
  throw UnsupportedError(message("[", call, "] ", network_called(name), " has ", beyond, ", which ",
                                 format, " cannot hold"));
}

std::string network_called(std::string_view name) {
  return name.empty() ? "the network" : "the network '" + excerpt(name) + "'";
}

}  // namespace openrnn::mapping
