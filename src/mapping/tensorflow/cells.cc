#include "mapping/tensorflow/cells.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/support/options.h"
#include "spec/tensorflow.h"

namespace openrnn::mapping {

namespace {

// LSTMBlockCell's scope is lstm_cell, too; GRUBlockCellV2's has the tensors of a GRUCell.
constexpr TfCellClass kTfCells[] = {
    {.name = "basic_lstm_cell", .forget_bias = 1.0},
    {.name = "lstm_cell", .forget_bias = 1.0},
    {.name = "lstm_block_cell", .forget_bias = 1.0},
    {.name = "lstm_fused_cell", .forget_bias = 1.0},
    {.name = "lstm_block_fused_cell", .forget_bias = 1.0},
    {.name = "layer_norm_basic_lstm_cell", .forget_bias = 1.0, .normalizes = true},
    {.name = "cudnn_compatible_lstm_cell", .single_bias = false},
    {.name = "basic_rnn_cell", .mode = RnnMode::kRnnTanh},
    {.name = "gru_cell", .mode = RnnMode::kGru, .reset_after = false},
    {.name = "cudnn_compatible_gru_cell", .mode = RnnMode::kGru, .single_bias = false},
};

// 'lstm_cell' of 'rnn/lstm_cell_1'.
std::string_view class_name(std::string_view scope) {
  std::string_view name = scope.substr(scope.rfind('/') + 1);
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits + 1 < name.size() && name[digits] == '_') {
    name = name.substr(0, digits);
  }
  return name;
}

const TfCellClass* class_called(std::string_view name) {
  const auto* const found = std::ranges::find(kTfCells, name, &TfCellClass::name);
  return found == std::end(kTfCells) ? nullptr : found;
}

// The tensors of a GRU tell which one it is, whatever it is called.
const TfCellClass* class_of(const TfScope& scope) {
  if (scope.find("gates/kernel")) {
    if (scope.find("candidate/kernel")) return class_called("gru_cell");
    if (scope.find("candidate/input_projection/kernel")) {
      return class_called("cudnn_compatible_gru_cell");
    }
    return nullptr;
  }
  const TfCellClass* const named = class_called(class_name(scope.scope));
  return named && named->mode != RnnMode::kGru && scope.find("kernel") ? named : nullptr;
}

const TfVariable& matrix(const TfScope& scope, std::string_view suffix) {
  const TfVariable* const found = scope.find(suffix);
  if (!found) throw NoCell{message("it has no ", suffix)};
  if (found->shape.size() == 2 && found->shape[0] > 0 && found->shape[1] > 0) return *found;
  throw NoCell{message(suffix, " has shape ", to_string(found->shape),
                       ", expected two sizes of at least 1")};
}

DType floating_dtype(const TfVariable& variable) {
  for (const DType one : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (variable.dtype == dtype_name(one)) return one;
  }
  throw NoCell{message("its elements are ", excerpt(variable.dtype), ", expected floating point")};
}

RnnMode plain_mode(const TfScope& scope, const MappingHints& hints, const std::string& path) {
  if (hints.mode == RnnMode::kRnnTanh || hints.mode == RnnMode::kRnnRelu) return *hints.mode;
  throw ArgumentError(message("[load_networks] ", network_called(scope.scope), " in ", path,
                              " is a plain one, of which TensorFlow's files do not say tanh or "
                              "relu, expected the hint mode: rnn_tanh or rnn_relu"));
}

std::int64_t units_of(const TfVariable& kernel, std::int64_t gates) {
  if (kernel.shape[1] % gates == 0) return kernel.shape[1] / gates;
  throw NoCell{message("its kernel has shape ", to_string(kernel.shape), ", expected ", gates,
                       " gates of equally many columns")};
}

// TensorFlow's own cells, whose kernels have the rows of inputs and states.
void set_tf_spec(const MappingHints& hints, const std::string& path, TfCell* cell) {
  const TfScope& scope = *cell->scope;
  const TfCellClass& kind = *cell->kind;
  RnnSpec& spec = cell->spec;
  spec.mode = kind.mode;
  const bool is_gru = kind.mode == RnnMode::kGru;
  const TfVariable& kernel = matrix(scope, is_gru ? "gates/kernel" : "kernel");
  spec.dtype = floating_dtype(kernel);
  spec.num_units = units_of(kernel, is_gru ? 2 : spec.num_gates());
  if (scope.find("projection/kernel")) spec.num_proj = matrix(scope, "projection/kernel").shape[1];
  spec.input_size = kernel.shape[0] - spec.hidden_size();
  spec.reset_after = kind.reset_after;
  spec.single_bias = kind.single_bias;
  spec.use_peepholes = scope.find("w_i_diag") != nullptr;
  if (kind.forget_bias != 0.0) spec.forget_bias = hints.forget_bias.value_or(kind.forget_bias);
  if (kind.normalizes && !scope.find("bias")) {
    spec.layer_norm = LayerNorm::kGates;
    spec.layer_norm_cell = LayerNormCell::kCarried;
    spec.layer_norm_epsilon = spec::layer_norm_basic_epsilon(spec.dtype);
  }
  if (kind.mode == RnnMode::kRnnTanh) spec.mode = plain_mode(scope, hints, path);
}

// Whether the GRU's reset gate comes after the product shows in the form of its bias.
void set_gru_form(const TfVariable* bias, const MappingHints& hints, const std::string& path,
                  TfCell* cell) {
  RnnSpec& spec = cell->spec;
  if (bias) {
    spec.reset_after = bias->shape.size() == 2;
    spec.single_bias = !spec.reset_after;
  } else if (hints.reset_after) {
    spec.reset_after = *hints.reset_after;
  } else {
    throw ArgumentError(message("[load_networks] ", network_called(cell->scope->scope), " in ",
                                path,
                                " is a GRU without biases, of which the file does not say "
                                "its form, expected the hint reset_after"));
  }
}

void set_keras_spec(const MappingHints& hints, const std::string& path, TfCell* cell) {
  const TfScope& scope = *cell->scope;
  const TfVariable& kernel = matrix(scope, "kernel");
  const TfVariable& recurrent = matrix(scope, "recurrent_kernel");
  const TfVariable* const bias = scope.find("bias");
  RnnSpec& spec = cell->spec;
  spec.dtype = floating_dtype(kernel);
  spec.num_units = recurrent.shape[0];
  spec.input_size = kernel.shape[0];
  spec.use_bias = bias != nullptr;
  spec.single_bias = bias != nullptr;
  const std::int64_t gates = recurrent.shape[1] / spec.num_units;
  if (gates * spec.num_units != recurrent.shape[1] || (gates != 1 && gates != 3 && gates != 4)) {
    throw NoCell{message("recurrent_kernel has shape ", to_string(recurrent.shape),
                         ", expected 1, 3 or 4 gates of ", spec.num_units, " columns")};
  }
  spec.mode = gates == 4 ? RnnMode::kLstm : gates == 3 ? RnnMode::kGru : RnnMode::kRnnTanh;
  if (gates == 1) spec.mode = plain_mode(scope, hints, path);
  if (gates == 3) set_gru_form(bias, hints, path, cell);
  if (gates > 1) spec.recurrent_activation = hints.recurrent_activation;
}

}  // namespace

std::optional<TfCell> tf_cell(const TfScope& scope, const MappingHints& hints,
                              const std::string& path) {
  TfCell cell;
  cell.scope = &scope;
  cell.is_keras = scope.find("recurrent_kernel") != nullptr;
  cell.kind = class_of(scope);
  if (!cell.is_keras && !cell.kind) return std::nullopt;
  if (cell.is_keras) {
    set_keras_spec(hints, path, &cell);
  } else {
    set_tf_spec(hints, path, &cell);
  }
  try {
    cell.spec.validate();
  } catch (const ArgumentError& error) {
    throw NoCell{error.what()};
  }
  place_tf_cell(&cell);
  return cell;
}

}  // namespace openrnn::mapping
