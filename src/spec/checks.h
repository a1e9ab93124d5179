// What each field of an RnnSpec must be.
#pragma once

#include "openrnn/spec.h"

namespace openrnn::spec {

// Each throws ArgumentError naming the field, its value and what was expected.
void check_num_layers(const RnnSpec& spec);
void check_num_units(const RnnSpec& spec);
/// Under skip_input it is num_units.
void check_input_size(const RnnSpec& spec);
void check_dtype(const RnnSpec& spec);
void check_dropout(const RnnSpec& spec);
void check_input_dropout(const RnnSpec& spec);
void check_output_dropout(const RnnSpec& spec);
void check_drop_connect(const RnnSpec& spec);
void check_num_proj(const RnnSpec& spec);
void check_cell_clip(const RnnSpec& spec);
void check_forget_bias(const RnnSpec& spec);
void check_reset_after(const RnnSpec& spec);
void check_activation(const RnnSpec& spec);
void check_recurrent_activation(const RnnSpec& spec);
void check_output_activation(const RnnSpec& spec);
void check_use_peepholes(const RnnSpec& spec);
void check_coupled_gates(const RnnSpec& spec);
void check_proj_clip(const RnnSpec& spec);
void check_gate_clip(const RnnSpec& spec);
void check_single_bias(const RnnSpec& spec);
void check_layer_norm(const RnnSpec& spec);
void check_layer_norm_cell(const RnnSpec& spec);
void check_layer_norm_epsilon(const RnnSpec& spec);
void check_zoneout(const RnnSpec& spec);
void check_zoneout_cell(const RnnSpec& spec);
void check_recurrent_dropout(const RnnSpec& spec);
void check_math(const RnnSpec& spec);
void check_weights_dtype(const RnnSpec& spec);

}  // namespace openrnn::spec
