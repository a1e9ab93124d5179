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

/// 'rnn_relu', 'rnn_tanh', 'lstm', 'gru'; 'linear_input', 'skip_input', 'auto_select';
/// 'unidirectional', 'bidirectional'; 'float32', 'bf16', 'bf16x3', 'tf32', 'fp16'; 'none',
/// 'float16', 'bfloat16', 'int8'.
OPENRNN_API std::string_view to_string(RnnMode mode);
OPENRNN_API std::string_view to_string(InputMode mode);
OPENRNN_API std::string_view to_string(Direction direction);
OPENRNN_API std::string_view to_string(Math math);
OPENRNN_API std::string_view to_string(WeightsDType dtype);
/// The inverses. Throws: ArgumentError listing the names.
OPENRNN_API RnnMode parse_rnn_mode(std::string_view name);
OPENRNN_API InputMode parse_input_mode(std::string_view name);
OPENRNN_API Direction parse_direction(std::string_view name);
OPENRNN_API Math parse_math(std::string_view name);
OPENRNN_API WeightsDType parse_weights_dtype(std::string_view name);

/// What a gate computes, in the names of the equations: i input, f forget, c new memory, o output
/// (LSTM); r reset, z update, n new memory (GRU); h the only one of a plain network.
enum class Gate : std::uint8_t { kI, kF, kC, kO, kR, kZ, kN, kH };
OPENRNN_API std::string_view to_string(Gate gate);
/// The gates in slot order: lstm i f c o; gru r z n; rnn_relu and rnn_tanh h.
OPENRNN_API std::span<const Gate> gates_of(RnnMode mode);

/// How a network is trained.
struct TrainingOptions {
  /// Rate of the dropout between layers in training, in [0, 1].
  double dropout = 0.0;
  /// Random seed of dropout and of a layer's default initializer; see Graph::op_seeds.
  std::optional<std::int64_t> seed = {};

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

/// A recurrent network of cuDNN's kind. L layers, U units, I input size, P projection size,
/// D directions, G gates; O = P when projecting, else U. Each member is in rnn_fields().
struct OPENRNN_API RnnSpec {
  RnnMode mode = RnnMode::kLstm;
  std::int64_t num_layers = 1;
  std::int64_t num_units = 0;
  std::int64_t input_size = 0;
  InputMode input_mode = InputMode::kLinearInput;
  Direction direction = Direction::kUnidirectional;
  DType dtype = DType::kFloat32;
  /// LSTM projection size P; 0 is off, and so is P == U.
  std::int64_t num_proj = 0;
  /// Clamp of the LSTM cell right after its update; off when empty. Not on 'cudnn'.
  std::optional<std::array<double, 2>> cell_clip = {};
  /// Joins the biases of the LSTM's forget gate, as TensorFlow's BasicLSTMCell has it: it is in no
  /// parameter and has no gradient. Not on 'cudnn'.
  double forget_bias = 0.0;
  TrainingOptions training = {};
  ComputeOptions compute = {};

  std::int64_t num_dirs() const { return direction == Direction::kBidirectional ? 2 : 1; }
  std::int64_t num_gates() const { return static_cast<std::int64_t>(gates_of(mode).size()); }
  bool is_lstm() const { return mode == RnnMode::kLstm; }
  bool projecting() const { return num_proj > 0 && num_proj < num_units; }
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
  /// skip_input, 0 <= dropout <= 1, a floating dtype, num_proj only for lstm and at most U, an
  /// ordered clip only for lstm, math and weights_dtype other than the dtype's own not for float64
  /// and not both.
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
