#include "cudnn/rnn/plan.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "base/message.h"
#include "openrnn/spec_fields.h"

namespace openrnn::cudnn {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? text : otherwise;
}

constexpr int kFirstWithTf32 = 80;

constexpr std::array kAlgorithms = {CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_ALGO_PERSIST_STATIC,
                                    CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H};

std::string_view name_of(cudnnRNNAlgo_t algorithm) {
  if (algorithm == CUDNN_RNN_ALGO_STANDARD) return "standard";
  return algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC ? "persist_static" : "persist_static_small_h";
}

// The documented limits of the algorithm for small hidden sizes.
std::int64_t most_small_units(const RnnSpec& spec, bool training) {
  const bool gated = spec.mode == RnnMode::kLstm || spec.mode == RnnMode::kGru;
  return gated ? (training ? 128 : 192) : (training ? 256 : 384);
}

bool may_run(cudnnRNNAlgo_t algorithm, const RnnSpec& spec, const CallShape& shape) {
  if (algorithm == CUDNN_RNN_ALGO_STANDARD) return true;
  if (spec.projecting() || !shape.even || spec.dtype == DType::kFloat64) return false;
  return algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC ||
         spec.num_units <= most_small_units(spec, shape.training);
}

// Persistent kernels need all their blocks to be resident on the GPU at once. On these two they
// have hung and read out of bounds.
bool trusted_to_persist(int capability) { return capability != 75 && capability != 86; }

// The networks for which PyTorch enables persistent kernels, after years of hangs and illegal
// accesses elsewhere (aten/src/ATen/native/cudnn/RNN.cpp).
bool widely_run(const RnnSpec& spec, const CallShape& shape) {
  constexpr std::int64_t kUnitStep = 128, kMostUnits = 1024, kRowStep = 8, kMostRows = 128;
  constexpr int kFirstWithoutGru = 80;
  const bool gru = spec.mode == RnnMode::kGru;
  return spec.dtype == DType::kFloat16 && spec.num_layers == 1 && spec.num_dirs() == 1 &&
         spec.num_units % kUnitStep == 0 && spec.num_units <= kMostUnits &&
         spec.input_size % kUnitStep == 0 && shape.rows % kRowStep == 0 &&
         shape.rows <= kMostRows && !(gru && shape.capability >= kFirstWithoutGru);
}

/// Whether it is tried without having been named: an error of a kernel ends all work of a process
/// on its GPU, so only what others have used for long.
bool may_try(cudnnRNNAlgo_t algorithm, const RnnSpec& spec, const CallShape& shape) {
  if (algorithm == CUDNN_RNN_ALGO_STANDARD) return true;
  if (!trusted_to_persist(shape.capability)) return false;
  return algorithm != CUDNN_RNN_ALGO_PERSIST_STATIC || widely_run(spec, shape);
}

/// At most the largest integer.
std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      return std::numeric_limits<std::int64_t>::max();
    }
  }
  return result;
}

constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

/// Of all matrices, biases left out.
std::int64_t matrix_elements(const RnnSpec& spec, std::int64_t layer) {
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max() / 4;
  const std::int64_t width = spec.hidden_size();
  const std::int64_t inputs = layer == 0 && spec.skips_input() ? 0 : spec.layer_input_size(layer);
  const std::int64_t gates = product({spec.num_gates(), spec.num_units, inputs + width});
  const std::int64_t projection = spec.projecting() ? product({width, spec.num_units}) : 0;
  return spec.num_dirs() * (std::min(gates, kMany) + std::min(projection, kMany));
}

std::int64_t most_weights() {
  const std::string text = environment("OPENRNN_CUDNN_MAX_WEIGHTS", "");
  const std::int64_t most = text.empty() ? kMost32 : std::strtoll(text.c_str(), nullptr, 10);
  return most >= 1 && most < kMost32 ? most : kMost32;
}

std::string rows_that_fit(std::int64_t time, std::int64_t width) {
  const std::int64_t rows = kMost32 / product({time, width});
  if (rows == 0) return "not even one row of these steps fits: use device='cpu'";
  return message("split the batch: ", rows, " rows of ", time, " steps fit");
}

}  // namespace

Extent extent_of(const ForwardArgs& args) {
  const std::int64_t time = std::min(args.max_time, most_steps());
  Extent extent{args.batch, time, 0};
  if (!args.sequence_lengths) {
    extent.vectors = product({args.batch, time});
    return extent;
  }
  for (std::int64_t b = 0; b < args.batch; ++b) {
    extent.vectors += std::min<std::int64_t>(args.sequence_lengths[b], time);
  }
  return extent;
}

bool has_too_many_weights(const RnnSpec& spec) {
  if (spec.num_layers == 1) return false;
  const std::int64_t later = product({spec.num_layers - 1, matrix_elements(spec, 1)});
  return matrix_elements(spec, 0) > most_weights() - std::min(later, most_weights());
}

std::int64_t most_steps() {
  const std::string text = environment("OPENRNN_CUDNN_MAX_TIME", "");
  const std::int64_t most = text.empty() ? kMostSteps : std::strtoll(text.c_str(), nullptr, 10);
  return most >= 1 && most < kMostSteps ? most : kMostSteps;
}

DropoutBy dropout_by() {
  const std::string text = environment("OPENRNN_CUDNN_DROPOUT", "exact");
  if (text == "exact") return DropoutBy::kExact;
  if (text == "fast") return DropoutBy::kFast;
  throw ArgumentError(
      message("[cudnn] OPENRNN_CUDNN_DROPOUT is '", text, "', expected 'exact' or 'fast'"));
}

std::string to_string(const Variant& variant) {
  return message(name_of(variant.algorithm), variant.padded ? "+padded" : "");
}

std::string algorithm_choice() {
  std::string text = environment("OPENRNN_CUDNN_ALGORITHM", "auto");
  bool known = text == "auto";
  for (const cudnnRNNAlgo_t each : kAlgorithms) known = known || text == name_of(each);
  if (!known) {
    throw ArgumentError(message("[cudnn] OPENRNN_CUDNN_ALGORITHM is '", text,
                                "', expected 'auto', 'standard', 'persist_static' or "
                                "'persist_static_small_h'"));
  }
  return text;
}

std::vector<Variant> candidates(const RnnSpec& spec, const CallShape& shape,
                                const std::string& choice) {
  std::vector<Variant> list = {Variant{}};
  for (const cudnnRNNAlgo_t algorithm : kAlgorithms) {
    if (choice != "auto" && choice != name_of(algorithm)) continue;
    if (!may_run(algorithm, spec, shape)) continue;
    if (choice == "auto" && !may_try(algorithm, spec, shape)) continue;
    for (const bool padded : {false, true}) {
      const Variant variant{algorithm, padded};
      if (variant == Variant{} || (padded && !shape.even)) continue;
      list.push_back(variant);
    }
  }
  // A named one runs wherever it can, not only where it is faster.
  if (choice == "standard") list.resize(1);
  if (choice != "auto" && choice != "standard" && list.size() > 1) list = {list[1], list[0]};
  return list;
}

Tf32Override tf32_override() {
  const std::string text = environment("NVIDIA_TF32_OVERRIDE", "");
  if (text.empty()) return Tf32Override::kNone;
  return text == "0" ? Tf32Override::kOff : Tf32Override::kOn;
}

std::string_view products_on_gpu(const RnnSpec& spec, int capability) {
  if (spec.dtype == DType::kFloat64) return "float64";
  const bool decides = spec.dtype == DType::kFloat32 && spec.compute.math != Math::kFp16;
  switch (decides ? tf32_override() : Tf32Override::kNone) {
    case Tf32Override::kOff:
      return "float32";
    case Tf32Override::kOn:
      return capability >= kFirstWithTf32 ? "tf32" : "float32";
    default:
      return to_string(spec.compute.math);
  }
}

std::string unsupported_by_cudnn(const RnnSpec& spec, int capability) {
  if (spec.dtype == DType::kBfloat16) {
    return "dtype 'bfloat16' is of processors here; GPUs have float16, float32 and float64, and "
           "device='cpu' has this";
  }
  if (spec.compute.math == Math::kBf16 || spec.compute.math == Math::kBf16x3) {
    return message("math '", to_string(spec.compute.math),
                   "' is arithmetic of processors; cuDNN has 'float32', 'tf32' and 'fp16', and "
                   "device='cpu' has this");
  }
  if (spec.compute.weights_dtype != WeightsDType::kNone) {
    return message("cuDNN has no weights_dtype '", to_string(spec.compute.weights_dtype),
                   "'; device='cpu' has it");
  }
  if (spec.forget_bias != 0.0) {
    return "cuDNN reads biases from the parameters alone, without a forget_bias; device='cpu' has "
           "it";
  }
  if (!spec.has_cudnn_step() || spec.biases_per_gate() != 2 || spec.proj_clip) {
    return message("cuDNN has the four cells alone, without ", step_options(spec),
                   "; device='cpu' has them");
  }
  if (spec.projecting() && !spec.is_lstm()) {
    return message("cuDNN projects lstm only, expected no num_proj for ", to_string(spec.mode),
                   "; device='cpu' has it");
  }
  if (spec.cell_clip) {
    // Read in the code of cuDNN 9.19 and 9.26: it clamps c where a step reads it and for tanh(c),
    // stores and passes on the raw one, and does not clamp the gradient of the last one.
    return "cuDNN clamps cells only where it reads them, so with cell_clip its final cells and "
           "their gradients are others; device='cpu' clamps what a step leaves";
  }
  if (spec.compute.math == Math::kTf32 && capability < kFirstWithTf32) {
    return message("math 'tf32' needs a GPU of compute capability 8.0, this one has ",
                   capability / 10, ".", capability % 10);
  }
  return {};
}

void check_limits(std::string_view call, const RnnSpec& spec, const Extent& extent) {
  const auto refuse = [&](std::string_view name, std::int64_t value, std::int64_t most,
                          std::string_view remedy) {
    throw EngineError(message("[", call, "] ", name, " is ", value, ", expected at most ", most,
                              " on 'cudnn', which counts in 32 bits; ", remedy));
  };
  const auto check = [&](std::string_view name, std::int64_t value, std::string_view remedy) {
    if (value > kMost32) refuse(name, value, kMost32, remedy);
  };
  constexpr std::string_view kOther = "use device='cpu'", kSplit = "split the batch";
  check("num_units", spec.num_units, kOther);
  check("input_size", spec.input_size, kOther);
  check("num_layers * num_dirs", spec.num_pseudo_layers(), kOther);
  check("num_dirs * output width", spec.output_size(), kOther);
  for (std::int64_t layer = 0; layer < std::min<std::int64_t>(spec.num_layers, 2); ++layer) {
    const std::int64_t elements = matrix_elements(spec, layer);
    if (elements <= most_weights()) continue;
    refuse(message("elements of the matrices of layer ", layer), elements, most_weights(), kOther);
  }
  check("batch", extent.batch, kSplit);
  // cuDNN refuses a descriptor of states of more elements.
  check("num_layers * num_dirs * batch * num_units",
        product({spec.num_pseudo_layers(), extent.batch, spec.num_units}), kSplit);
  const std::int64_t width = std::max(spec.input_size, spec.output_size());
  const std::int64_t elements = product({extent.vectors, width});
  if (elements > kMost32) {
    refuse("time * batch * width of the widest layer", elements, kMost32,
           rows_that_fit(extent.time, width));
  }
}

RnnSpec part_of(const RnnSpec& spec, std::int64_t first, std::int64_t count, int direction) {
  RnnSpec part = spec;
  part.num_layers = count;
  part.input_size = spec.layer_input_size(first);
  part.input_mode =
      first == 0 && spec.skips_input() ? InputMode::kSkipInput : InputMode::kLinearInput;
  if (direction >= 0) part.direction = Direction::kUnidirectional;
  part.training.dropout = 0.0;
  part.training.seed.reset();
  return part;
}

}  // namespace openrnn::cudnn
