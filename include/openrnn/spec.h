// What a recurrent network is: RnnSpec, its validation and its gate tables.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "openrnn/base.h"

namespace openrnn {

class Device;

enum class RnnMode : std::uint8_t { kRnnRelu, kRnnTanh, kLstm, kGru };
enum class InputMode : std::uint8_t { kLinearInput, kSkipInput, kAutoSelect };
enum class Direction : std::uint8_t { kUnidirectional, kBidirectional };

/// The arithmetic of the products; sums, gates and the cell state are float32 in all of them.
/// kFloat32: exact in the spec's own dtype. kBf16: both operands rounded to bfloat16. kBf16x3: both
/// split into two bfloat16, three products. kTf32, kFp16: GPUs only.
enum class Math : std::uint8_t { kFloat32, kBf16, kBf16x3, kTf32, kFp16 };
/// Storage of weights for inference; kNone: the spec's dtype. kInt8 is per output channel, with
/// activations scaled per row and time step.
enum class WeightsDType : std::uint8_t { kNone, kFloat16, kBfloat16, kInt8 };

/// Layer normalization of what enters the gates, each value with a gain; biases join after it.
/// kProducts: W x and R h apart, each over all G*U values (Ba et al. 2016, Haste).
/// kSplitProducts: the same of a GRU, but r and z over 2U and n over U (Ba et al. 2016). kGates: of
/// an LSTM, W x + R h of each gate over U (TensorFlow's LayerNormBasicLSTMCell).
enum class LayerNorm : std::uint8_t { kNone, kProducts, kSplitProducts, kGates };
/// Of the LSTM's cell, with gain and bias. kOutput: on its way out alone (Ba et al. 2016, Haste).
/// kCarried: the next step sees the normalized cell, too (LayerNormBasicLSTMCell).
enum class LayerNormCell : std::uint8_t { kNone, kOutput, kCarried };

/// 'rnn_relu', 'rnn_tanh', 'lstm', 'gru'; 'linear_input', 'skip_input', 'auto_select';
/// 'unidirectional', 'bidirectional'; 'float32', 'bf16', 'bf16x3', 'tf32', 'fp16'; 'none',
/// 'float16', 'bfloat16', 'int8'; 'none', 'products', 'split_products', 'gates'; 'none', 'output',
/// 'carried'.
OPENRNN_API std::string_view to_string(RnnMode mode);
OPENRNN_API std::string_view to_string(InputMode mode);
OPENRNN_API std::string_view to_string(Direction direction);
OPENRNN_API std::string_view to_string(Math math);
OPENRNN_API std::string_view to_string(WeightsDType dtype);
OPENRNN_API std::string_view to_string(LayerNorm norm);
OPENRNN_API std::string_view to_string(LayerNormCell norm);
/// The inverses. Throws: ArgumentError listing the names.
OPENRNN_API RnnMode parse_rnn_mode(std::string_view name);
OPENRNN_API InputMode parse_input_mode(std::string_view name);
OPENRNN_API Direction parse_direction(std::string_view name);
OPENRNN_API Math parse_math(std::string_view name);
OPENRNN_API WeightsDType parse_weights_dtype(std::string_view name);
OPENRNN_API LayerNorm parse_layer_norm(std::string_view name);
OPENRNN_API LayerNormCell parse_layer_norm_cell(std::string_view name);

/// What a gate computes, in the names of the equations: i input, f forget, c new memory, o output
/// (LSTM); r reset, z update, n new memory (GRU); h the only one of a plain network.
enum class Gate : std::uint8_t { kI, kF, kC, kO, kR, kZ, kN, kH };
OPENRNN_API std::string_view to_string(Gate gate);
/// The gates in slot order: lstm i f c o; gru r z n; rnn_relu and rnn_tanh h.
OPENRNN_API std::span<const Gate> gates_of(RnnMode mode);

/// The functions of a cell, by ONNX's names.
enum class CellActivationKind : std::uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kAffine,           // alpha x + beta
  kLeakyRelu,        // x, but alpha x below 0
  kThresholdedRelu,  // x above alpha, else 0
  kScaledTanh,       // alpha tanh(beta x)
  kHardSigmoid,      // min(max(alpha x + beta, 0), 1)
  kElu,              // x, but alpha (e^x - 1) below 0
  kSoftsign,         // x / (1 + |x|)
  kSoftplus,         // ln(1 + e^x)
};

/// One of them with its parameters, which are 0 where it has none.
struct CellActivation {
  CellActivationKind kind = CellActivationKind::kTanh;
  double alpha = 0.0, beta = 0.0;

  friend bool operator==(const CellActivation&, const CellActivation&) = default;
};

/// The function with its default parameters: affine 1, 0; leaky_relu 0.01; thresholded_relu 1;
/// scaled_tanh 1, 1; hard_sigmoid 0.2, 0.5; elu 1 (ONNX's, where it has some).
OPENRNN_API CellActivation make_cell_activation(CellActivationKind kind);
/// "tanh", "leaky_relu(0.1)", "hard_sigmoid(0.2, 0.5)"; parameters that are left out take their
/// defaults. 'linear' is affine(1, 0). Throws: ArgumentError listing the names, or for parameters
/// that are no finite numbers or too many.
OPENRNN_API CellActivation parse_cell_activation(std::string_view text);
/// Its inverse, with every parameter.
OPENRNN_API std::string to_string(const CellActivation& activation);

/// What recurrent_dropout masks: kState the state that enters the recurrent product, one mask for
/// all steps of a call (Gal and Ghahramani 2016); kCandidate the candidate, anew each step
/// (Semeniuta et al. 2016).
enum class RecurrentDropoutForm : std::uint8_t { kState, kCandidate };

/// How a network is trained.
struct TrainingOptions {
  /// Rate of the dropout between layers in training, in [0, 1].
  double dropout = 0.0;
  /// Random seed of dropout and of a layer's default initializer; see Graph::op_seeds.
  std::optional<std::int64_t> seed = {};
  /// Rates, in [0, 1], of what operations do around the engine in training: dropout of the input of
  /// layer 0 and of the last layer's output, each element of each step by itself, and DropConnect
  /// (Wan et al. 2013) of the recurrent weights, one mask a call. What is kept is divided by
  /// 1 - rate, so that nothing changes outside of training.
  double input_dropout = 0.0, output_dropout = 0.0, drop_connect = 0.0;
  /// Rate, in [0, 1], of the dropout inside a step, which engines apply, and what it masks. What is
  /// kept is divided by 1 - rate. Not on 'cudnn'.
  double recurrent_dropout = 0.0;
  RecurrentDropoutForm recurrent_dropout_form = RecurrentDropoutForm::kState;

  /// Whether operations have something to do around the engine.
  bool drops_around() const {
    return input_dropout > 0.0 || output_dropout > 0.0 || drop_connect > 0.0;
  }
  bool drops_state() const {
    return recurrent_dropout > 0.0 && recurrent_dropout_form == RecurrentDropoutForm::kState;
  }
  bool drops_candidate() const {
    return recurrent_dropout > 0.0 && recurrent_dropout_form == RecurrentDropoutForm::kCandidate;
  }

  friend bool operator==(const TrainingOptions&, const TrainingOptions&) = default;
};

/// How a network is computed.
struct ComputeOptions {
  /// Arithmetic of the products.
  Math math = Math::kFloat32;
  /// Not kNone: for calls without gradients only. Variables keep the network's dtype.
  WeightsDType weights_dtype = WeightsDType::kNone;
  /// Device of a layer's variables and calls, or of a model's calls and host data; null: the
  /// default one, or that of the tensors of a model's call. Engines ignore it.
  const Device* device = nullptr;

  friend bool operator==(const ComputeOptions&, const ComputeOptions&) = default;
};

/// A recurrent network: cuDNN's four cells, and what the options after `num_proj` make of them
/// (docs/cells_reference.md has the equations). L layers, U units, I input size, P projection size,
/// D directions, G gates; O = P when projecting, else U. Each member is in rnn_fields().
struct OPENRNN_API RnnSpec {
  RnnMode mode = RnnMode::kLstm;
  std::int64_t num_layers = 1;
  std::int64_t num_units = 0;
  std::int64_t input_size = 0;
  InputMode input_mode = InputMode::kLinearInput;
  Direction direction = Direction::kUnidirectional;
  DType dtype = DType::kFloat32;
  /// Projection size P; 0 is off, and so is P == U.
  std::int64_t num_proj = 0;
  /// Clamp of the LSTM cell right after its update; off when empty. Not on 'cudnn'.
  std::optional<std::array<double, 2>> cell_clip = {};
  /// Joins the biases of the LSTM's forget gate, as TensorFlow's BasicLSTMCell has it: it is in no
  /// parameter and has no gradient. Not on 'cudnn'.
  double forget_bias = 0.0;
  /// GRU: whether the reset gate applies to the product with the state (cuDNN's) or to the state
  /// before it.
  bool reset_after = true;
  /// Of the candidate: the LSTM's new memory, the GRU's n, a plain network's state. Empty: tanh,
  /// and relu for rnn_relu.
  std::optional<CellActivation> activation = {};
  /// Of the gates of LSTM and GRU. Empty: sigmoid.
  std::optional<CellActivation> recurrent_activation = {};
  /// Of the LSTM's cell on its way out. Empty: tanh.
  std::optional<CellActivation> output_activation = {};
  /// LSTM: i and f also see the cell before the step, o the cell after it, each unit its own.
  bool use_peepholes = false;
  /// LSTM: f is 1 - i; its weights are there and unused.
  bool coupled_gates = false;
  /// Bounds of the projected output.
  std::optional<std::array<double, 2>> proj_clip = {};
  /// Bounds of what enters the activations of gates and candidate.
  std::optional<std::array<double, 2>> gate_clip = {};
  /// Without, there are no biases in the parameters.
  bool use_bias = true;
  /// One bias a gate, on the input's side, in place of cuDNN's two.
  bool single_bias = false;
  /// Of LSTM and GRU.
  LayerNorm layer_norm = LayerNorm::kNone;
  /// LSTM, with layer_norm.
  LayerNormCell layer_norm_cell = LayerNormCell::kNone;
  /// Joins the variance of each of them: 1e-5 as in Haste and PyTorch; TensorFlow has 1e-12.
  double layer_norm_epsilon = 1e-5;
  /// Rates, in [0, 1], at which a unit of h, or of the LSTM's cell, keeps its value of the step
  /// before (Krueger et al. 2017): at random in training, its expectation outside of it. Not on
  /// 'cudnn'.
  double zoneout = 0.0, zoneout_cell = 0.0;
  TrainingOptions training = {};
  ComputeOptions compute = {};

  std::int64_t num_dirs() const { return direction == Direction::kBidirectional ? 2 : 1; }
  std::int64_t num_gates() const { return static_cast<std::int64_t>(gates_of(mode).size()); }
  bool is_lstm() const { return mode == RnnMode::kLstm; }
  bool projecting() const { return num_proj > 0 && num_proj < num_units; }
  /// Whether there is a second state c, [L*D, B, U]: the LSTM's cell, or what a projected GRU
  /// interpolates before its projection.
  bool has_cell() const { return is_lstm() || (mode == RnnMode::kGru && projecting()); }
  CellActivation candidate_activation() const;
  CellActivation gate_activation() const;
  CellActivation cell_activation() const;
  /// Whether a step is one of cuDNN's four cells, but for biases, forget_bias and cell_clip.
  bool has_cudnn_step() const;
  bool normalizes() const { return layer_norm != LayerNorm::kNone; }
  /// Whether W x and R h are normalized apart.
  bool normalizes_products() const { return normalizes() && layer_norm != LayerNorm::kGates; }
  bool normalizes_cell() const { return layer_norm_cell != LayerNormCell::kNone; }
  /// Whether units keep values of the step before.
  bool zones_out() const { return zoneout > 0.0 || zoneout_cell > 0.0; }
  /// Whether training uses random masks.
  bool draws_masks() const {
    return training.dropout > 0.0 || training.drops_around() || training.recurrent_dropout > 0.0 ||
           zones_out();
  }
  /// How many biases a gate has: 0, 1 or 2.
  int biases_per_gate() const { return !use_bias ? 0 : single_bias ? 1 : 2; }
  /// Whether layer 0 takes x itself in place of W x: skip_input, or auto_select with I == U.
  bool skips_input() const;
  /// O, the width of one direction's output and of h.
  std::int64_t hidden_size() const { return projecting() ? num_proj : num_units; }
  /// D * O, the width of the network's output.
  std::int64_t output_size() const { return num_dirs() * hidden_size(); }
  /// Width entering `layer`: I at layer 0, else D * O.
  std::int64_t layer_input_size(std::int64_t layer) const {
    return layer == 0 ? input_size : output_size();
  }
  /// L * D.
  std::int64_t num_pseudo_layers() const { return num_layers * num_dirs(); }
  /// [L*D, B, O].
  Shape h_shape(std::int64_t batch) const { return {num_pseudo_layers(), batch, hidden_size()}; }
  /// [L*D, B, U].
  Shape c_shape(std::int64_t batch) const { return {num_pseudo_layers(), batch, num_units}; }

  /// Throws: ArgumentError naming the field, its value and what was expected, as the checks of
  /// rnn_fields(): sizes of at least 1 (and small enough that no size overflows), I == U under
  /// skip_input, 0 <= dropout <= 1, a floating dtype, num_proj at most U, ordered
  /// clips, options of one cell not for another, math and weights_dtype other than the dtype's own
  /// not for float64 and not both.
  void validate() const;

  friend bool operator==(const RnnSpec&, const RnnSpec&) = default;
};

/// A validated spec. Converting an RnnSpec to it validates; so a function that takes a ValidSpec
/// takes either and never validates twice.
class OPENRNN_API ValidSpec {
 public:
  /// Throws: ArgumentError as RnnSpec::validate.
  ValidSpec(const RnnSpec& spec) : spec_(spec) { spec_.validate(); }  // NOLINT: it converts
  operator const RnnSpec&() const noexcept { return spec_; }          // NOLINT: it converts
  const RnnSpec& operator*() const noexcept { return spec_; }
  const RnnSpec* operator->() const noexcept { return &spec_; }

 private:
  RnnSpec spec_;
};

/// "lstm, 2 layers, 128 units, input size 64, bidirectional, float32".
OPENRNN_API std::string describe(const RnnSpec& spec);

}  // namespace openrnn
