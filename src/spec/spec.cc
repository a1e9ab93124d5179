#include "openrnn/spec.h"

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn {
namespace {

template <class Enum>
struct Name {
  Enum value;
  std::string_view name;
};
// clang 14 does not deduce the arguments of an aggregate by itself.
template <class Enum>
Name(Enum, const char*) -> Name<Enum>;

// Each table is in the order of its enumerators.
constexpr std::array kModes = {Name{RnnMode::kRnnRelu, "rnn_relu"},
                               Name{RnnMode::kRnnTanh, "rnn_tanh"}, Name{RnnMode::kLstm, "lstm"},
                               Name{RnnMode::kGru, "gru"}};
constexpr std::array kInputModes = {Name{InputMode::kLinearInput, "linear_input"},
                                    Name{InputMode::kSkipInput, "skip_input"},
                                    Name{InputMode::kAutoSelect, "auto_select"}};
constexpr std::array kDirections = {Name{Direction::kUnidirectional, "unidirectional"},
                                    Name{Direction::kBidirectional, "bidirectional"}};
constexpr std::array kMaths = {Name{Math::kFloat32, "float32"}, Name{Math::kBf16, "bf16"},
                               Name{Math::kBf16x3, "bf16x3"}, Name{Math::kTf32, "tf32"},
                               Name{Math::kFp16, "fp16"}};
constexpr std::array kWeightsDTypes = {
    Name{WeightsDType::kNone, "none"}, Name{WeightsDType::kFloat16, "float16"},
    Name{WeightsDType::kBfloat16, "bfloat16"}, Name{WeightsDType::kInt8, "int8"}};
constexpr std::array kGateNames = {Name{Gate::kI, "i"}, Name{Gate::kF, "f"}, Name{Gate::kC, "c"},
                                   Name{Gate::kO, "o"}, Name{Gate::kR, "r"}, Name{Gate::kZ, "z"},
                                   Name{Gate::kN, "n"}, Name{Gate::kH, "h"}};

constexpr std::array kLstmGates = {Gate::kI, Gate::kF, Gate::kC, Gate::kO};
constexpr std::array kGruGates = {Gate::kR, Gate::kZ, Gate::kN};
constexpr std::array kPlainGates = {Gate::kH};

template <class Table, class Enum>
std::string_view name_in(const Table& table, Enum value) {
  return table.at(static_cast<std::size_t>(value)).name;
}

template <class Table>
auto parse_in(const Table& table, std::string_view what, std::string_view name) {
  std::string known;
  for (const auto& entry : table) {
    if (entry.name == name) return entry.value;
    known += message(known.empty() ? "'" : ", '", entry.name, "'");
  }
  throw ArgumentError(
      message("[", what, "] ", what, " is '", excerpt(name), "', expected one of ", known));
}

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

void validate_lstm_options(const RnnSpec& spec) {
  if (spec.num_proj != 0) {
    require_lstm(spec, "num_proj");
    if (spec.num_proj < 0 || spec.num_proj > spec.num_units) {
      throw ArgumentError(message("[RnnSpec] num_proj is ", spec.num_proj,
                                  ", expected 0 (off) to num_units = ", spec.num_units));
    }
  }
  if (spec.cell_clip) {
    require_lstm(spec, "cell_clip");
    const auto [low, high] = *spec.cell_clip;
    if (!(low <= high)) {
      throw ArgumentError(
          message("[RnnSpec] cell_clip is [", low, ", ", high, "], expected low <= high"));
    }
  }
}

void validate_arithmetic(const RnnSpec& spec) {
  const bool lower = spec.math != Math::kFloat32,
             stored = spec.weights_dtype != WeightsDType::kNone;
  if (lower && spec.dtype == DType::kFloat64) {
    throw ArgumentError(message("[RnnSpec] math is '", to_string(spec.math),
                                "' with dtype float64, expected 'float32' (exact)"));
  }
  if (stored && spec.dtype == DType::kFloat64) {
    throw ArgumentError(message("[RnnSpec] weights_dtype is '", to_string(spec.weights_dtype),
                                "' with dtype float64, expected 'none'"));
  }
  if (lower && stored) {
    throw ArgumentError(message("[RnnSpec] weights_dtype is '", to_string(spec.weights_dtype),
                                "' with math '", to_string(spec.math), "', expected one of them"));
  }
}

}  // namespace

std::string_view to_string(RnnMode mode) { return name_in(kModes, mode); }
std::string_view to_string(InputMode mode) { return name_in(kInputModes, mode); }
std::string_view to_string(Direction direction) { return name_in(kDirections, direction); }
std::string_view to_string(Math math) { return name_in(kMaths, math); }
std::string_view to_string(WeightsDType dtype) { return name_in(kWeightsDTypes, dtype); }
std::string_view to_string(Gate gate) { return name_in(kGateNames, gate); }
RnnMode parse_rnn_mode(std::string_view name) { return parse_in(kModes, "rnn_mode", name); }
InputMode parse_input_mode(std::string_view name) {
  return parse_in(kInputModes, "input_mode", name);
}
Direction parse_direction(std::string_view name) {
  return parse_in(kDirections, "direction", name);
}

Math parse_math(std::string_view name) { return parse_in(kMaths, "math", name); }
WeightsDType parse_weights_dtype(std::string_view name) {
  return parse_in(kWeightsDTypes, "weights_dtype", name);
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

void RnnSpec::validate() const {
  require_size("num_layers", num_layers, kMostLayers);
  require_size("num_units", num_units, kLargestSize);
  require_size("input_size", input_size, kLargestSize);
  if (input_mode == InputMode::kSkipInput && input_size != num_units) {
    throw ArgumentError(message("[RnnSpec] input_size is ", input_size,
                                " under skip_input, expected num_units = ", num_units));
  }
  if (!is_floating(dtype)) {
    throw ArgumentError(message("[RnnSpec] dtype is ", dtype_name(dtype),
                                ", expected float16, float32 or float64"));
  }
  if (!(dropout >= 0.0 && dropout <= 1.0)) {
    throw ArgumentError(message("[RnnSpec] dropout is ", dropout, ", expected 0 to 1"));
  }
  validate_lstm_options(*this);
  validate_arithmetic(*this);
}

std::string describe(const RnnSpec& spec) {
  std::string text = message(to_string(spec.mode), ", ", spec.num_layers,
                             spec.num_layers == 1 ? " layer, " : " layers, ", spec.num_units,
                             " units, input size ", spec.input_size, ", ",
                             to_string(spec.direction), ", ", dtype_name(spec.dtype));
  if (spec.skips_input()) text += ", skip_input";
  if (spec.projecting()) text += message(", projection to ", spec.num_proj);
  if (spec.math != Math::kFloat32) text += message(", math ", to_string(spec.math));
  if (spec.weights_dtype != WeightsDType::kNone) {
    text += message(", weights stored as ", to_string(spec.weights_dtype));
  }
  return text;
}

}  // namespace openrnn
