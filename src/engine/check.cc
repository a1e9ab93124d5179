#include <algorithm>

#include "base/message.h"
#include "engine/sum_order.h"
#include "openrnn/engine.h"

namespace openrnn {
namespace {

// Counts [steps, width] elements without a Shape, since a prepared call allocates nothing.
void require_pointer(std::string_view call, std::string_view name, const void* pointer,
                     std::int64_t steps, std::int64_t width) {
  std::int64_t elements = 0;
  if (__builtin_mul_overflow(steps, width, &elements)) {
    throw ArgumentError(message("[", call, "] ", name, " has ", steps, " steps of ", width,
                                ", expected fewer than 2^63 elements"));
  }
  if (elements > 0 && pointer == nullptr) {
    throw ArgumentError(
        message("[", call, "] ", name, " is null, expected ", elements, " elements"));
  }
}

}  // namespace

std::string unsupported_on_cpu(const RnnSpec& spec) {
  if (spec.compute.math != Math::kTf32 && spec.compute.math != Math::kFp16) return {};
  return message("math '", to_string(spec.compute.math),
                 "' is arithmetic of GPUs; a processor has 'float32', 'bf16' and 'bf16x3'");
}

void check_pack(const Engine& engine, const ValidSpec& valid, PackFor purpose) {
  const RnnSpec& spec = valid;
  if (const std::string reason = engine.unsupported(spec); !reason.empty()) {
    throw EngineError(
        message("[pack] '", engine.name(), "' cannot run ", describe(spec), ": ", reason));
  }
  if (purpose == PackFor::kTraining && spec.compute.weights_dtype != WeightsDType::kNone) {
    throw UnsupportedError(message("[pack] weights_dtype is '",
                                   to_string(spec.compute.weights_dtype),
                                   "', which is for inference; expected 'none' in training"));
  }
}

std::int64_t recompute_steps(std::int64_t recompute, std::int64_t max_time) {
  if (recompute == 0) return 0;
  std::int64_t least = recompute;
  // The root, which no group of steps is longer than for short sequences.
  if (recompute < 0) {
    for (least = kGradientSteps; least < max_time / least;) least += kGradientSteps;
  }
  // No longer than the sequence, so that nothing overflows.
  least = std::min(least, std::max<std::int64_t>(max_time, 1));
  return (least + kGradientSteps - 1) / kGradientSteps * kGradientSteps;
}

void check_recompute(const Engine& engine, std::int64_t recompute) {
  if (recompute == 0 || engine.recomputes()) return;
  throw UnsupportedError(message("[forward_saving] engine '", engine.name(),
                                 "' keeps all that backward reads and cannot recompute it, ",
                                 "expected save=True (recompute 0), or engine 'cpu'"));
}

void check_reserve(std::string_view call, const Engine& engine, const ForwardArgs& args) {
  if (!args.reserve) return;
  if (!engine.reserve_bytes(args.params->spec(), args)) {
    throw UnsupportedError(message("[", call, "] engine '", engine.name(),
                                   "' keeps what backward reads in memory of its own, expected ",
                                   "no reserve, or engine 'cpu'"));
  }
  if (args.recompute != 0) {
    throw ArgumentError(message("[", call, "] reserve is given and recompute is ", args.recompute,
                                ", expected one of them"));
  }
  if (reinterpret_cast<std::uintptr_t>(args.reserve) % kReserveAlignment == 0) return;  // NOLINT
  throw ArgumentError(message("[", call, "] reserve is not aligned, expected an address that is ",
                              "a multiple of ", kReserveAlignment));
}

std::unique_ptr<SavedForward> Engine::saved_in(const ForwardArgs& args) const {
  static_cast<void>(args);
  throw UnsupportedError(message("[saved_in] engine '", name(),
                                 "' keeps what backward reads in memory of its own, expected ",
                                 "engine 'cpu'"));
}

void check_rows(const Engine& engine, const BackwardArgs& args, std::int64_t batch) {
  if (!args.row_norms && !args.row_dparams) return;
  if (!engine.has_row_gradients()) {
    throw UnsupportedError(message("[backward] gradients of rows are asked of engine '",
                                   engine.name(), "', which has none, expected engine 'cpu'"));
  }
  if (!args.row_dparams) return;
  if (0 <= args.first_row && args.first_row <= args.last_row && args.last_row <= batch) return;
  throw ArgumentError(message("[backward] row_dparams is of rows ", args.first_row, " to ",
                              args.last_row, ", expected rows within 0 to ", batch));
}

void check_part(std::string_view call, const DropoutKey& key, std::int64_t rows) {
  // Masks number rows in 32 bits.
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  if (key.whole_batch == 0 && key.first_row == 0) return;
  if (0 <= key.first_row && 0 <= rows && key.whole_batch <= kMost &&
      rows <= key.whole_batch - key.first_row) {
    return;
  }
  throw ArgumentError(message("[", call, "] first_row is ", key.first_row, " of ", rows,
                              " rows, and whole_batch ", key.whole_batch, ", expected rows within ",
                              "it, and at most 2^32"));
}

void check_forward(std::string_view call, const ForwardArgs& args) {
  if (!args.params) {
    throw ArgumentError(message("[", call, "] params is null, expected packed parameters"));
  }
  if (args.max_time < 0 || args.batch < 0) {
    throw ArgumentError(message("[", call, "] max_time is ", args.max_time, " and batch ",
                                args.batch, ", expected 0 or more"));
  }
  if (args.max_threads < 0) {
    throw ArgumentError(
        message("[", call, "] max_threads is ", args.max_threads, ", expected 0 or more"));
  }
  if (args.recompute < kRecomputeRoot) {
    throw ArgumentError(message("[", call, "] recompute is ", args.recompute,
                                ", expected a number of steps, 0 or kRecomputeRoot"));
  }
  check_part(call, args.dropout, args.batch);
  const RnnSpec& spec = args.params->spec();
  if (args.training && spec.training.drops_around()) {
    throw ArgumentError(message("[", call, "] params are of ", describe(spec),
                                ", expected them without input_dropout, output_dropout and ",
                                "drop_connect: operations apply those (ops::rnn), engines do not"));
  }
  std::int64_t steps = 0;
  if (__builtin_mul_overflow(args.max_time, args.batch, &steps)) {
    throw ArgumentError(message("[", call, "] max_time is ", args.max_time, " and batch ",
                                args.batch, ", expected a product below 2^63"));
  }
  require_pointer(call, "x", args.x, steps, spec.input_size);
  require_pointer(call, "y", args.y, steps, spec.output_size());
  if (args.layer_cells && !spec.has_cell()) {
    throw ArgumentError(
        message("[", call, "] layer_cells is given, expected null for ", to_string(spec.mode)));
  }
  if (!args.sequence_lengths) return;
  for (std::int64_t row = 0; row < args.batch; ++row) {
    const std::int32_t length = args.sequence_lengths[row];
    if (length < 0 || length > args.max_time) {
      throw ArgumentError(message("[", call, "] sequence_lengths[", row, "] is ", length,
                                  ", expected 0 to ", args.max_time));
    }
  }
}

}  // namespace openrnn
