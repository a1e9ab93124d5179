// The cell format as data: the place of each region of the opaque buffer in a tensor.
#include "base/message.h"
#include "openrnn/saveables.h"
#include "spec/tensorflow.h"

namespace openrnn {
namespace {

// Column blocks of a joined kernel, as indices into gates_of(mode). TensorFlow's lstm cells have
// the new memory second.
std::vector<std::int64_t> joined_gates(RnnMode mode) {
  if (mode == RnnMode::kLstm) return {0, 2, 1, 3};
  return {0};
}

struct Place {
  const ParamsLayout* layout;
  std::int64_t layer, direction;
  std::string scope;

  TfTensor tensor(const std::string& suffix, Shape shape, TfTensorKind kind) const {
    return {scope + "/" + suffix, layer, direction, suffix, std::move(shape), kind, {}};
  }

  const ParamRegion& weight(ParamRole role, std::int64_t gate) const {
    return layout->weight(layer, direction, role, gate);
  }
  const ParamRegion& bias(ParamRole role, std::int64_t gate) const {
    return layout->bias(layer, direction, role, gate);
  }
};

TfPart matrix_part(const ParamRegion& region, std::int64_t row, std::int64_t col) {
  return {region.rows, region.cols, region.offset, -1, row, col};
}

using Gates = std::vector<std::int64_t>;

// Rows: inputs, then hidden units; columns: the gates.
TfTensor joined_kernel(const Place& at, const std::string& suffix, const Gates& gates) {
  TfTensor tensor = at.tensor(suffix, {}, TfTensorKind::kWeight);
  std::int64_t col = 0;
  for (const std::int64_t gate : gates) {
    const ParamRegion& input = at.weight(ParamRole::kInputWeight, gate);
    const ParamRegion& hidden = at.weight(ParamRole::kRecurrentWeight, gate);
    tensor.parts.push_back(matrix_part(input, 0, col));
    tensor.parts.push_back(matrix_part(hidden, input.cols, col));
    col += input.rows;
    tensor.shape = {input.cols + hidden.cols, col};
  }
  return tensor;
}

// The sums of the biases of some gates, or the biases where each has one; nothing without.
void append_bias(const Place& at, const std::string& suffix, const Gates& gates,
                 std::vector<TfTensor>& list) {
  const int biases = at.layout->spec().biases_per_gate();
  if (biases == 0) return;
  TfTensor tensor = at.tensor(suffix, {0}, TfTensorKind::kBias);
  for (const std::int64_t gate : gates) {
    const ParamRegion& input = at.bias(ParamRole::kInputBias, gate);
    const std::int64_t second =
        biases > 1 ? at.bias(ParamRole::kRecurrentBias, gate).offset : std::int64_t{-1};
    tensor.parts.push_back({input.rows, 1, input.offset, second, 0, tensor.shape[0]});
    tensor.shape[0] += input.rows;
  }
  list.push_back(std::move(tensor));
}

TfTensor transposed(const Place& at, const std::string& suffix, const ParamRegion& region) {
  TfTensor tensor = at.tensor(suffix, {region.cols, region.rows}, TfTensorKind::kWeight);
  tensor.parts.push_back(matrix_part(region, 0, 0));
  return tensor;
}

TfTensor vector_alone(const Place& at, const std::string& suffix, const ParamRegion& region) {
  TfTensor tensor = at.tensor(suffix, {region.rows}, TfTensorKind::kBias);
  tensor.parts.push_back({region.rows, 1, region.offset, -1, 0, 0});
  return tensor;
}

// Vectors of some gates in one tensor.
TfTensor joined_vector(const Place& at, const std::string& suffix, ParamRole role,
                       const Gates& gates) {
  TfTensor tensor = at.tensor(suffix, {0}, TfTensorKind::kBias);
  for (const std::int64_t gate : gates) {
    const ParamRegion& region = at.bias(role, gate);
    tensor.parts.push_back({region.rows, 1, region.offset, -1, 0, tensor.shape[0]});
    tensor.shape[0] += region.rows;
  }
  return tensor;
}

// Layer normalization has the names of TensorFlow Addons' cells; that of gates those of
// LayerNormBasicLSTMCell, where the bias of a gate is its beta.
void append_norms(const Place& at, const Gates& gates, std::vector<TfTensor>& list) {
  const RnnSpec& spec = at.layout->spec();
  const bool of_gates = spec.layer_norm == LayerNorm::kGates;
  const std::string cell = of_gates ? "state/" : "state_norm/";
  if (of_gates) {
    constexpr std::pair<const char*, std::int64_t> kScopes[] = {
        {"input/", 0}, {"transform/", 2}, {"forget/", 1}, {"output/", 3}};
    for (const auto& [scope, gate] : kScopes) {
      list.push_back(vector_alone(at, message(scope, "gamma"), at.bias(ParamRole::kSumGain, gate)));
      append_bias(at, message(scope, "beta"), {gate}, list);
    }
  } else if (spec.normalizes()) {
    list.push_back(joined_vector(at, "kernel_norm/gamma", ParamRole::kInputGain, gates));
    list.push_back(joined_vector(at, "recurrent_norm/gamma", ParamRole::kRecurrentGain, gates));
  }
  if (!spec.normalizes_cell()) return;
  list.push_back(vector_alone(at, cell + "gamma", at.bias(ParamRole::kCellGain, 0)));
  list.push_back(vector_alone(at, cell + "beta", at.bias(ParamRole::kCellBias, 0)));
}

constexpr std::int64_t kCandidate = 2;

void append_projection(const Place& at, std::vector<TfTensor>& weights) {
  if (!at.layout->spec().projecting()) return;
  weights.push_back(transposed(at, "projection/kernel", at.weight(ParamRole::kProjection, 0)));
  weights.back().kind = TfTensorKind::kProjection;
}

// TensorFlow's GRUCell, whose candidate has one kernel, too.
void append_reset_before(const Place& at, std::vector<TfTensor>& weights,
                         std::vector<TfTensor>& biases) {
  weights.push_back(joined_kernel(at, "gates/kernel", {0, 1}));
  weights.push_back(joined_kernel(at, "candidate/kernel", {kCandidate}));
  append_bias(at, "gates/bias", {0, 1}, biases);
  append_bias(at, "candidate/bias", {kCandidate}, biases);
}

void append_gru(const Place& at, std::vector<TfTensor>& weights, std::vector<TfTensor>& biases) {
  const RnnSpec& spec = at.layout->spec();
  if (!spec.reset_after) return append_reset_before(at, weights, biases);
  weights.push_back(joined_kernel(at, "gates/kernel", {0, 1}));
  weights.push_back(transposed(at, "candidate/input_projection/kernel",
                               at.weight(ParamRole::kInputWeight, kCandidate)));
  weights.push_back(transposed(at, "candidate/hidden_projection/kernel",
                               at.weight(ParamRole::kRecurrentWeight, kCandidate)));
  append_projection(at, weights);
  append_bias(at, "gates/bias", {0, 1}, biases);
  if (spec.biases_per_gate() > 0) {
    biases.push_back(vector_alone(at, "candidate/input_projection/bias",
                                  at.bias(ParamRole::kInputBias, kCandidate)));
  }
  if (spec.biases_per_gate() > 1) {
    biases.push_back(vector_alone(at, "candidate/hidden_projection/bias",
                                  at.bias(ParamRole::kRecurrentBias, kCandidate)));
  }
  append_norms(at, {0, 1, kCandidate}, biases);
}

void append_plain(const Place& at, std::vector<TfTensor>& weights, std::vector<TfTensor>& biases) {
  const Gates gates = joined_gates(at.layout->spec().mode);
  weights.push_back(joined_kernel(at, "kernel", gates));
  append_projection(at, weights);
  const RnnSpec& spec = at.layout->spec();
  if (spec.layer_norm != LayerNorm::kGates) append_bias(at, "bias", gates, biases);
  append_norms(at, gates, biases);
  if (!spec.use_peepholes) return;
  constexpr std::pair<const char*, std::int64_t> kPeepholes[] = {
      {"w_f_diag", 1}, {"w_i_diag", 0}, {"w_o_diag", 3}};
  for (const auto& [suffix, gate] : kPeepholes) {
    biases.push_back(vector_alone(at, suffix, at.bias(ParamRole::kPeephole, gate)));
  }
}

// Whether TensorFlow's LayerNormBasicLSTMCell computes the step, but for what no tensor and no name
// tells of any cell: forget_bias, activations, clips.
bool is_layer_norm_basic(const RnnSpec& spec) {
  return spec.layer_norm == LayerNorm::kGates && spec.layer_norm_cell == LayerNormCell::kCarried &&
         spec.layer_norm_epsilon == spec::layer_norm_basic_epsilon(spec.dtype) && spec.use_bias &&
         !spec.use_peepholes && !spec.projecting() && !spec.coupled_gates;
}

}  // namespace

std::string tf_cell_scope(Direction direction, std::int64_t layer, std::int64_t dir) {
  if (direction == Direction::kUnidirectional) return message("rnn/multi_rnn_cell/cell_", layer);
  return message("stack_bidirectional_rnn/cell_", layer, "/bidirectional_rnn/",
                 dir == 0 ? "fw" : "bw");
}

std::string_view tf_cell_name(RnnMode mode) {
  switch (mode) {
    case RnnMode::kLstm:
      return "cudnn_compatible_lstm_cell";
    case RnnMode::kGru:
      return "cudnn_compatible_gru_cell";
    default:
      return "basic_rnn_cell";
  }
}

std::string_view tf_cell_name(const RnnSpec& spec) {
  if (!spec.reset_after) return "gru_cell";
  if (!spec.normalizes()) return tf_cell_name(spec.mode);
  if (spec.mode == RnnMode::kGru) {
    const bool splits = spec.layer_norm == LayerNorm::kSplitProducts;
    return splits ? "layer_norm_split_gru_cell" : "layer_norm_gru_cell";
  }
  if (is_layer_norm_basic(spec)) return "layer_norm_basic_lstm_cell";
  switch (spec.layer_norm_cell) {
    case LayerNormCell::kOutput:
      return "layer_norm_output_lstm_cell";
    case LayerNormCell::kCarried:
      return "layer_norm_carried_lstm_cell";
    default:
      return "layer_norm_lstm_cell";
  }
}

TfCanonicalFormat::TfCanonicalFormat(const RnnSpec& spec) : spec_(spec) {
  const ParamsLayout layout(spec);
  opaque_size_ = layout.size();
  std::vector<TfTensor> biases;
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    for (std::int64_t dir = 0; dir < spec.num_dirs(); ++dir) {
      const Place at{&layout, layer, dir,
                     message(tf_cell_scope(spec.direction, layer, dir), "/", tf_cell_name(spec))};
      (spec.mode == RnnMode::kGru ? append_gru : append_plain)(at, tensors_, biases);
    }
  }
  for (TfTensor& bias : biases) tensors_.push_back(std::move(bias));
}

}  // namespace openrnn
