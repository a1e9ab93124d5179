#include "spec/checks.h"

#include <cmath>

#include "base/message.h"

namespace openrnn::spec {
namespace {

// Far above any network, and low enough that no product of sizes overflows 63 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 22;
constexpr std::int64_t kMostLayers = std::int64_t{1} << 10;

void require_size(std::string_view field, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most) {
    throw ArgumentError(message("[RnnSpec] ", field, " is ", value, ", expected 1 to ", most));
  }
}

void require_lstm(const RnnSpec& spec, std::string_view field) {
  if (!spec.is_lstm()) {
    throw ArgumentError(message("[RnnSpec] ", field, " is set for ", to_string(spec.mode),
                                ", expected it for lstm only"));
  }
}

void require_rate(std::string_view field, double rate) {
  if (rate >= 0.0 && rate <= 1.0) return;
  throw ArgumentError(message("[RnnSpec] ", field, " is ", rate, ", expected 0 to 1"));
}

// NaN is in no order.
void require_order(std::string_view field, const std::array<double, 2>& clip) {
  if (clip[0] <= clip[1]) return;
  throw ArgumentError(
      message("[RnnSpec] ", field, " is [", clip[0], ", ", clip[1], "], expected low <= high"));
}

void require_finite(std::string_view field, const std::optional<CellActivation>& given) {
  if (!given || (std::isfinite(given->alpha) && std::isfinite(given->beta))) return;
  throw ArgumentError(
      message("[RnnSpec] ", field, " is ", to_string(*given), ", expected finite parameters"));
}

}  // namespace

void check_num_layers(const RnnSpec& spec) {
  require_size("num_layers", spec.num_layers, kMostLayers);
}

void check_num_units(const RnnSpec& spec) {
  require_size("num_units", spec.num_units, kLargestSize);
}

void check_input_size(const RnnSpec& spec) {
  require_size("input_size", spec.input_size, kLargestSize);
  if (spec.input_mode == InputMode::kSkipInput && spec.input_size != spec.num_units) {
    throw ArgumentError(message("[RnnSpec] input_size is ", spec.input_size,
                                " under skip_input, expected num_units = ", spec.num_units));
  }
}

void check_dtype(const RnnSpec& spec) {
  if (is_floating(spec.dtype)) return;
  throw ArgumentError(message("[RnnSpec] dtype is ", dtype_name(spec.dtype),
                              ", expected float16, bfloat16, float32 or float64"));
}

void check_dropout(const RnnSpec& spec) { require_rate("dropout", spec.training.dropout); }

void check_input_dropout(const RnnSpec& spec) {
  require_rate("input_dropout", spec.training.input_dropout);
}

void check_output_dropout(const RnnSpec& spec) {
  require_rate("output_dropout", spec.training.output_dropout);
}

void check_drop_connect(const RnnSpec& spec) {
  require_rate("drop_connect", spec.training.drop_connect);
}

void check_num_proj(const RnnSpec& spec) {
  if (spec.num_proj == 0) return;
  if (spec.projecting() && !spec.reset_after) {
    throw ArgumentError(
        "[RnnSpec] num_proj is set with reset_after false, expected it true: r has num_units "
        "values and the state before the product num_proj");
  }
  if (spec.num_proj > 0 && spec.num_proj <= spec.num_units) return;
  throw ArgumentError(message("[RnnSpec] num_proj is ", spec.num_proj,
                              ", expected 0 (off) to num_units = ", spec.num_units));
}

void check_cell_clip(const RnnSpec& spec) {
  if (!spec.cell_clip) return;
  require_lstm(spec, "cell_clip");
  require_order("cell_clip", *spec.cell_clip);
}

void check_forget_bias(const RnnSpec& spec) {
  if (spec.forget_bias == 0.0) return;
  require_lstm(spec, "forget_bias");
  if (std::isfinite(spec.forget_bias)) return;
  throw ArgumentError(
      message("[RnnSpec] forget_bias is ", spec.forget_bias, ", expected a finite number"));
}

void check_reset_after(const RnnSpec& spec) {
  if (spec.reset_after || spec.mode == RnnMode::kGru) return;
  throw ArgumentError(message("[RnnSpec] reset_after is false for ", to_string(spec.mode),
                              ", expected that for gru only"));
}

void check_activation(const RnnSpec& spec) { require_finite("activation", spec.activation); }

void check_recurrent_activation(const RnnSpec& spec) {
  if (!spec.recurrent_activation) return;
  if (!spec.is_lstm() && spec.mode != RnnMode::kGru) {
    throw ArgumentError(message("[RnnSpec] recurrent_activation is set for ", to_string(spec.mode),
                                ", expected it for lstm and gru only"));
  }
  require_finite("recurrent_activation", spec.recurrent_activation);
}

void check_output_activation(const RnnSpec& spec) {
  if (!spec.output_activation) return;
  require_lstm(spec, "output_activation");
  require_finite("output_activation", spec.output_activation);
}

void check_use_peepholes(const RnnSpec& spec) {
  if (spec.use_peepholes) require_lstm(spec, "use_peepholes");
}

void check_coupled_gates(const RnnSpec& spec) {
  if (spec.coupled_gates) require_lstm(spec, "coupled_gates");
}

void check_proj_clip(const RnnSpec& spec) {
  if (!spec.proj_clip) return;
  if (!spec.projecting()) {
    throw ArgumentError(
        "[RnnSpec] proj_clip is set without a projection, expected num_proj below "
        "num_units with it");
  }
  require_order("proj_clip", *spec.proj_clip);
}

void check_gate_clip(const RnnSpec& spec) {
  if (spec.gate_clip) require_order("gate_clip", *spec.gate_clip);
}

void check_single_bias(const RnnSpec& spec) {
  if (spec.use_bias || !spec.single_bias) return;
  throw ArgumentError("[RnnSpec] single_bias is true and use_bias false, expected one of them");
}

// Only what has been published: the others would be names for cells that nobody else has.
void check_layer_norm(const RnnSpec& spec) {
  if (!spec.normalizes()) return;
  const std::string given = message("[RnnSpec] layer_norm is '", to_string(spec.layer_norm), "'");
  const bool gru = spec.mode == RnnMode::kGru;
  if (!gru && !spec.is_lstm()) {
    throw ArgumentError(
        message(given, " for ", to_string(spec.mode), ", expected it for lstm and gru only"));
  }
  if (spec.layer_norm == LayerNorm::kGates && gru) {
    throw ArgumentError(message(given, " for gru, expected 'products' or 'split_products'"));
  }
  if (spec.layer_norm == LayerNorm::kSplitProducts && !gru) {
    throw ArgumentError(message(given, " for lstm, expected 'products' or 'gates'"));
  }
  if (!spec.reset_after) {
    throw ArgumentError(message(given, " with reset_after false, expected reset_after true: the ",
                                "product with the state is normalized as a whole"));
  }
  if (gru && spec.projecting()) {
    throw ArgumentError(message(given, " with num_proj of a gru, expected one of them"));
  }
  if (spec.zones_out() || spec.training.recurrent_dropout > 0.0) {
    throw ArgumentError(
        message(given, " with zoneout or recurrent_dropout, expected none of them"));
  }
  if (spec.coupled_gates && spec.layer_norm == LayerNorm::kProducts) {
    throw ArgumentError(message(given,
                                " with coupled_gates, expected 'gates': the statistics of a ",
                                "product would be those of the forget gate's unused weights, too"));
  }
}

void check_layer_norm_cell(const RnnSpec& spec) {
  if (!spec.normalizes_cell()) return;
  require_lstm(spec, "layer_norm_cell");
  if (spec.normalizes()) return;
  throw ArgumentError(message("[RnnSpec] layer_norm_cell is '", to_string(spec.layer_norm_cell),
                              "' with layer_norm 'none', expected 'products' or 'gates' with it"));
}

void check_layer_norm_epsilon(const RnnSpec& spec) {
  // 1 / sqrt(epsilon) is the largest factor that a normalization multiplies with; its square, and
  // the sum of epsilon and a variance, stay inside float32.
  constexpr double kLeast = 1e-30, kMost = 1e30;
  const double epsilon = spec.layer_norm_epsilon;
  const bool plain = !spec.is_lstm() && spec.mode != RnnMode::kGru;
  const bool is_set = epsilon != RnnSpec{}.layer_norm_epsilon;
  if (plain && is_set) {
    throw ArgumentError(message("[RnnSpec] layer_norm_epsilon is set for ", to_string(spec.mode),
                                ", expected it for lstm and gru only"));
  }
  if (is_set && !spec.normalizes()) {
    throw ArgumentError(
        "[RnnSpec] layer_norm_epsilon is set with layer_norm 'none', expected layer_norm with it");
  }
  if (epsilon >= kLeast && epsilon <= kMost) return;
  throw ArgumentError(
      message("[RnnSpec] layer_norm_epsilon is ", epsilon, ", expected ", kLeast, " to ", kMost));
}

void check_zoneout(const RnnSpec& spec) { require_rate("zoneout", spec.zoneout); }

void check_zoneout_cell(const RnnSpec& spec) {
  require_rate("zoneout_cell", spec.zoneout_cell);
  if (spec.zoneout_cell == 0.0 || spec.has_cell()) return;
  throw ArgumentError(message("[RnnSpec] zoneout_cell is set for ", to_string(spec.mode),
                              ", expected it for lstm, and for gru with num_proj"));
}

void check_recurrent_dropout(const RnnSpec& spec) {
  require_rate("recurrent_dropout", spec.training.recurrent_dropout);
}

void check_math(const RnnSpec& spec) {
  if (spec.compute.math == Math::kFloat32 || spec.dtype != DType::kFloat64) return;
  throw ArgumentError(message("[RnnSpec] math is '", to_string(spec.compute.math),
                              "' with dtype float64, expected 'float32' (exact)"));
}

void check_weights_dtype(const RnnSpec& spec) {
  const std::string_view stored = to_string(spec.compute.weights_dtype);
  if (spec.compute.weights_dtype == WeightsDType::kNone) return;
  if (spec.dtype == DType::kFloat64) {
    throw ArgumentError(
        message("[RnnSpec] weights_dtype is '", stored, "' with dtype float64, expected 'none'"));
  }
  if (spec.compute.math != Math::kFloat32) {
    throw ArgumentError(message("[RnnSpec] weights_dtype is '", stored, "' with math '",
                                to_string(spec.compute.math), "', expected one of them"));
  }
}

}  // namespace openrnn::spec
