// The recurrent operation with history: one engine call on tensors.
#pragma once

#include <functional>
#include <mutex>

#include "openrnn/engine.h"
#include "openrnn/graph.h"
#include "openrnn/ops_part.h"

namespace openrnn::ops {

/// Keeps what an engine packed from a variable until the variable changes. Thread-safe; belongs to
/// the layer or model that calls.
class OPENRNN_API PackedCache {
 public:
  /// Packed for `purpose` or more. A tensor that is no leaf (a bare array) is packed each time.
  std::shared_ptr<const PackedParams> get(const Engine& engine, const ValidSpec& spec,
                                          const Tensor& params, PackFor purpose);
  /// Number of packings so far.
  std::uint64_t packings() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const PackedParams> packed_;
  const Engine* engine_ = nullptr;
  std::uint64_t leaf_id_ = 0, version_ = 0, packings_ = 0;
};

/// Steps that are skipped, and steps before which a state is put back. Each is [T, B], or [B, T]
/// when the call is batch-major, flat; empty: none is. A row of the batch is computed as the
/// sequences that its resets cut it into, each of its steps that are not masked, so a skipped step
/// costs nothing; the backward direction, too, begins anew in each. Dropout between layers numbers
/// the steps of such a sequence.
struct StepFlags {
  /// False: the step passes its row's state through.
  std::vector<bool> mask = {};
  /// What a masked step puts out: 0, or (Keras's default) its direction's last output in the same
  /// sequence, 0 before there is one.
  bool zero_output_for_mask = true;
  /// True: the row's state is put back before the step, masked or not.
  std::vector<bool> reset = {};
  /// To the call's initial state, else to zeros.
  bool reset_to_initial = false;

  bool any() const { return !mask.empty() || !reset.empty(); }
};

/// T max_time, B batch, I input size, L layers, D directions, O hidden size, U units.
struct RnnInputs {
  Tensor x = {};  // [T, B, I], or [B, T, I] when batch-major
  // A state that a call of the other layout returned is transposed.
  Tensor h0 = {};  // [L*D, B, O], or [B, L*D, O]; empty: zeros
  Tensor c0 = {};  // [L*D, B, U], or [B, L*D, U]; empty: zeros; where has_cell()
  /// The opaque buffer, at least params_size long: a Variable's read() or any tensor.
  Tensor params = {};
  /// [B], each 0 to T, any order; unset: all T.
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  /// The same as an int32 tensor [B], which may be symbolic; not both.
  Tensor lengths = {};
  /// Not for symbolic tensors.
  StepFlags flags = {};
  bool time_major = true;
  /// Whether dropout between layers is on.
  bool training = true;
  /// Keep what gradients need although training is off; else asking for a gradient is an error, as
  /// in TensorFlow.
  bool save = false;
  /// As ForwardArgs::recompute, of a call that keeps what gradients need: instead of that, x and
  /// some states, from which backward computes the rest again.
  std::int64_t recompute = 0;
  DropoutKey dropout = {};
  /// Gives the key in place of `dropout`; asked for it when nothing refuses the call any more, so
  /// that a refused call uses up none.
  std::function<DropoutKey()> next_dropout = {};
  /// Return the outputs of every layer too, and of a network with a c those of every time step.
  bool every = false;
  /// What error messages begin with.
  std::string call = "rnn";
};

/// Results of rnn.
struct RnnOutputs {
  Tensor output = {};  // [T, B, D*O], or [B, T, D*O]
  Tensor h = {};       // as h0
  Tensor c = {};       // as c0; empty unless has_cell()
  // h and c know their layout: a call with the other layout transposes them.
  /// With `every`: of each layer its output before dropout [T, B, D*O] (that of the last is
  /// `output` before output_dropout), and its cells [T, B, D*U]; batch-major when x is, padded
  /// positions 0. Values without history.
  std::vector<Tensor> layer_outputs = {};
  std::vector<Tensor> layer_cells = {};  // empty unless has_cell()
};

/// Values of an int32 tensor [B] of lengths; unset for an empty one.
/// Throws: ArgumentError for another dtype or rank.
OPENRNN_API std::optional<std::vector<std::int32_t>> lengths_of(std::string_view call,
                                                                const Tensor& lengths);

/// Throws: ArgumentError unless mask and reset are empty or have T * B elements.
OPENRNN_API void check_flags(std::string_view call, const StepFlags& flags, std::int64_t max_time,
                             std::int64_t batch);

/// Runs the engine that choose_engine names for the device of x. `cache` may be null: packs each
/// time. Gradients flow to x, h0, c0 and params. Throws: ArgumentError for a rank, shape, dtype or
/// length that does not fit `spec`, naming given and expected; UnsupportedError and EngineError as
/// choose_engine; UnsupportedError for a weights_dtype where a tape records and gradients may be
/// asked for, and for recompute on another engine than the cpu's.
OPENRNN_API RnnOutputs rnn(const ValidSpec& spec, const RnnInputs& inputs, PackedCache* cache);

/// The dropout state of one model: the same (seed, call) gives the same masks. In a PartScope the
/// keys are of its part, and each part of a step gets the same calls again, so the parts of a step
/// are computed one after another. Thread-compatible.
class OPENRNN_API DropoutState {
 public:
  /// `seeds` as Graph::op_seeds gives them; the key's seed is (first << 32) | second. Reads the
  /// environment variable TF_CUDNN_RESET_RND_GEN_STATE ('1' or 'true'): then every call gets the
  /// same key.
  explicit DropoutState(std::pair<std::int64_t, std::int64_t> seeds = {0, 0});
  /// The state of that seed after `calls` keys.
  static DropoutState of(std::uint64_t seed, std::uint64_t calls);
  /// The key of this call; the next call gets another.
  DropoutKey next();
  std::uint64_t seed() const noexcept { return seed_; }
  /// Training calls so far; a checkpoint keeps it.
  std::uint64_t calls() const noexcept { return calls_; }
  void set_calls(std::uint64_t calls) noexcept { calls_ = calls; }

 private:
  std::uint64_t next_call();
  std::uint64_t next_call_of(const PartScope& scope);
  std::uint64_t seed_ = 0, calls_ = 0;
  bool reset_each_call_ = false;
  /// The last part that drew: its step, the calls before that, its own calls.
  std::uint64_t step_of_parts_ = 0, calls_before_ = 0, calls_of_part_ = 0;
  std::int64_t first_row_ = 0;
};

}  // namespace openrnn::ops
