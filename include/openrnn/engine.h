// What an engine is: the recurrent computation behind one interface, on plain pointers.
#pragma once

#include <memory>
#include <string>

#include "openrnn/params.h"

namespace openrnn {

/// What packed weights will be used for: backward reads other forms of them than forward.
enum class PackFor : std::uint8_t { kInference, kTraining };

/// How parameters are packed; a PackFor converts to one.
struct PackOptions {
  PackFor purpose = PackFor::kInference;
  /// Threads that packing may use, the caller's included; 0: num_threads(). With 1 none is started.
  int max_threads = 0;
  /// Owner of the memory of `params`, if that keeps these elements as long as this is held: an
  /// engine may then read them in place instead of copying them. Null: it copies what it keeps.
  std::shared_ptr<const void> lender;
  PackOptions(PackFor use, int threads = 0,  // NOLINT
              std::shared_ptr<const void> lent = nullptr)
      : purpose(use), max_threads(threads), lender(std::move(lent)) {}
};

/// The largest call that a Workspace has room for.
struct WorkspaceLimits {
  std::int64_t batch = 0, time = 0;
  /// As ForwardArgs::max_threads, which a call with the workspace cannot exceed.
  int max_threads = 0;
};

/// Parameters in an engine's own form, made once. Immutable: any number of threads may use one.
class OPENRNN_API PackedParams {
 public:
  explicit PackedParams(const ValidSpec& spec, PackFor purpose) : spec_(spec), purpose_(purpose) {}
  virtual ~PackedParams() = default;
  PackedParams(const PackedParams&) = delete;
  PackedParams& operator=(const PackedParams&) = delete;
  const RnnSpec& spec() const noexcept { return spec_; }
  PackFor purpose() const noexcept { return purpose_; }
  /// For parameters that are read in a lender's memory: the same parameters over another `lender`
  /// with the same elements; for a null lender, without the elements, to be kept while those may be
  /// written (no call can use that). Returns null if nothing was lent: then this may be kept.
  virtual std::shared_ptr<const PackedParams> over(std::shared_ptr<const void> lender) const {
    static_cast<void>(lender);
    return nullptr;
  }

 private:
  RnnSpec spec_;
  PackFor purpose_;
};

/// Scratch memory of one caller for calls up to a batch and a time: with it, forward allocates
/// nothing. Not to be shared by two threads at once.
class OPENRNN_API Workspace {
 public:
  Workspace() = default;
  virtual ~Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
};

/// What one forward call saves for backward. It owns all of it (no memory of the caller's), and
/// nothing ever writes into it again, so backward may be called any number of times.
class OPENRNN_API SavedForward {
 public:
  SavedForward() = default;
  virtual ~SavedForward() = default;
  SavedForward(const SavedForward&) = delete;
  SavedForward& operator=(const SavedForward&) = delete;
};

/// One forward call. T max_time, B batch, I input size, L layers, D directions, O = P when
/// projecting else U. All elements are of the spec's dtype.
struct ForwardArgs {
  std::shared_ptr<const PackedParams> params;
  std::int64_t max_time = 0;
  std::int64_t batch = 0;
  /// True: x [T, B, I], y [T, B, D*O], states [L*D, B, .].
  /// False: x [B, T, I], y [B, T, D*O], states [B, L*D, .].
  bool time_major = true;
  /// [B], each in 0..T, any order; null: all are T. Padded x is never read, padded y is set to 0.
  const std::int32_t* sequence_lengths = nullptr;
  const void* x = nullptr;
  const void* h0 = nullptr;  // [L*D, B, O]; null: zeros
  const void* c0 = nullptr;  // [L*D, B, U]; null: zeros; where has_cell()
  void* y = nullptr;
  void* hn = nullptr;  // null: not wanted
  void* cn = nullptr;  // null: not wanted; where has_cell()
  /// Outputs of every layer, each laid out as y, padded positions 0: L pointers, of which null ones
  /// are not wanted; null: none is. A layer's output is that before dropout; the last one is y. No
  /// two arrays that a call writes may overlap. Asking changes no other bit.
  void* const* layer_outputs = nullptr;
  /// Cells of every layer and step, each [T, B, D*U] or [B, T, D*U], else as layer_outputs; after
  /// clipping. Where has_cell().
  void* const* layer_cells = nullptr;
  /// Whether dropout between layers is on; its masks are those of dropout_mask with `dropout`, over
  /// all D*O units of a layer's output at original time and row. Those of a step
  /// (recurrent_dropout, zoneout) are keyed alike, by pseudo-layer. The row is that of the whole
  /// batch where the call is a part of it: dropout.first_row + the call's own row, and no row of
  /// the part may lie outside dropout.whole_batch.
  bool training = false;
  DropoutKey dropout;
  /// Threads that this call and its backward may use, the caller's included; 0: num_threads().
  /// With 1 a call with a workspace neither waits for another thread nor makes a system call.
  int max_threads = 0;
  /// Of forward_saving. 0: keeps all that backward reads. Else it keeps x and the states at the
  /// borders of chunks of recompute_steps(recompute, max_time) steps, and backward computes one
  /// chunk after another again; every result has the same bits. For unidirectional networks that
  /// costs one more forward pass; for bidirectional ones, whose directions walk opposite ways,
  /// about two of the layers up to each, and memory for one layer's gradient over all of T.
  /// Engine 'cpu' only.
  std::int64_t recompute = 0;
  /// Of forward_saving: memory of Engine::reserve_bytes, at a multiple of kReserveAlignment, for
  /// what it keeps; null: its own. The SavedForward needs it unchanged. Not with recompute.
  void* reserve = nullptr;
};

/// Of the address of a ForwardArgs::reserve, in bytes: a cache line, as of an engine's own memory.
inline constexpr std::int64_t kReserveAlignment = 64;
/// A ForwardArgs::recompute of about the root of max_time.
inline constexpr std::int64_t kRecomputeRoot = -1;
/// Steps of a chunk: 0 for 0, else `recompute`, or the root of max_time, rounded up to a multiple
/// of 32, in whose groups gradients of weights are summed (docs/numerics.md).
OPENRNN_API std::int64_t recompute_steps(std::int64_t recompute, std::int64_t max_time);

/// One backward call. Shapes and layouts as in the forward call.
struct BackwardArgs {
  const SavedForward* saved = nullptr;
  const void* dy = nullptr;   // null: zeros. Padded positions are never read.
  const void* dhn = nullptr;  // null: zeros
  const void* dcn = nullptr;  // null: zeros; where has_cell()
  void* dx = nullptr;         // null: not wanted, as all below
  void* dh0 = nullptr;
  void* dc0 = nullptr;
  /// A buffer of the opaque layout, overwritten with the gradient.
  void* dparams = nullptr;
  /// Where has_row_gradients. A row's gradient is what dparams would be if dy, dhn and dcn were 0
  /// in every other row of the batch; dparams is their sum, up to rounding.
  /// [B]: the squared 2-norm of each row's gradient, summed in double. Needs memory for one
  /// gradient a thread. Not of calls with recompute.
  double* row_norms = nullptr;
  /// [last_row - first_row, params_size(spec)]: the gradients of rows [first_row, last_row).
  void* row_dparams = nullptr;
  std::int64_t first_row = 0, last_row = 0;
  /// Not null: an engine that can calls it while the pass goes on, on one of the call's threads,
  /// when the gradients of a layer are in dparams for good; the last layer first. It must not
  /// throw.
  const std::function<void(std::int64_t layer)>* layer_done = nullptr;
};

class Device;
struct TangentArgs;

/// An implementation of the recurrent computation. Stateless and thread-safe.
class OPENRNN_API Engine {
 public:
  virtual ~Engine() = default;
  /// 'reference', 'cpu', 'cudnn'.
  virtual std::string_view name() const = 0;
  /// The device whose memory all pointers of its calls refer to, except sequence_lengths and the
  /// lists of pointers, which are in host memory; null: host memory.
  virtual const Device* device() const { return nullptr; }
  /// One line of text: what it runs on, such as the instruction set.
  virtual std::string description() const = 0;
  /// Why this engine cannot run `spec`; empty when it can.
  virtual std::string unsupported(const RnnSpec& spec) const = 0;
  /// The arithmetic of the products of `spec` on this machine: 'float64', 'float32', 'dot' or 'amx'
  /// (two orders of the sums of bf16), 'bf16x3', 'int8'; the reference sums each in double. math
  /// 'bf16x3' without AMX is 'float32'. Results of equal kinds have equal bits.
  virtual std::string_view math_kind(const RnnSpec& spec) const = 0;
  /// Bytes that forward_saving keeps for backward, of a call of this size in training without
  /// initial states; `recompute` as in ForwardArgs. Unset where only a call can tell.
  virtual std::optional<std::int64_t> saved_bytes(const RnnSpec& spec, std::int64_t max_time,
                                                  std::int64_t batch,
                                                  std::int64_t recompute) const {
    static_cast<void>(spec), static_cast<void>(max_time), static_cast<void>(batch);
    static_cast<void>(recompute);
    return std::nullopt;
  }
  /// Whether backward gives row_norms and row_dparams.
  virtual bool has_row_gradients() const { return false; }
  /// `params` is the opaque buffer, at least params_size(spec) long. Throws: ArgumentError for
  /// params of another shape or dtype, or null; EngineError when this engine cannot run the math;
  /// UnsupportedError for training with a weights_dtype.
  virtual std::shared_ptr<const PackedParams> pack(const RnnSpec& spec,
                                                   const ConstArrayView& params,
                                                   const PackOptions& options) const = 0;
  virtual std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                                    const WorkspaceLimits& limits) const = 0;
  /// Runs without saving. With a workspace of sufficient size it allocates nothing; with null it
  /// makes its own. Throws: ArgumentError as check_forward, or for a workspace too small.
  virtual void forward(const ForwardArgs& args, Workspace* workspace = nullptr) const = 0;
  /// Runs and keeps what backward needs; the params must be packed for training. Writes the outputs
  /// and cells of every layer as forward does.
  virtual std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const = 0;
  /// Bytes of ForwardArgs::reserve for a call of these sizes, options and states, whose arrays are
  /// not read; unset where the engine keeps what it saves in memory of its own alone.
  virtual std::optional<std::int64_t> reserve_bytes(const RnnSpec& spec,
                                                    const ForwardArgs& args) const {
    static_cast<void>(spec), static_cast<void>(args);
    return std::nullopt;
  }
  /// What forward_saving of an equal call has left in `args.reserve`; no array is read or written,
  /// but states must be given where that call had them. Throws: UnsupportedError without
  /// reserve_bytes.
  virtual std::unique_ptr<SavedForward> saved_in(const ForwardArgs& args) const;
  /// The gradient of the saved call; the same bits at every call.
  virtual void backward(const BackwardArgs& args) const = 0;
  /// Whether a ForwardArgs::recompute other than 0 is possible.
  virtual bool recomputes() const { return false; }
  /// Whether tangent() knows every option that the spec sets.
  virtual bool has_tangent(const RnnSpec& spec) const {
    static_cast<void>(spec);
    return false;
  }
  /// J v and H v of a call (engine_tangent.h). Throws: UnsupportedError unless has_tangent.
  virtual void tangent(const TangentArgs& args) const;
};

/// Throws: ArgumentError when sizes are negative, a needed pointer is null, a length lies outside
/// 0..T (naming its row and value), max_threads is negative, recompute below kRecomputeRoot,
/// cells are asked of a mode that has none, or the rows lie outside of the whole batch.
OPENRNN_API void check_forward(std::string_view call, const ForwardArgs& args);
/// Throws: ArgumentError unless `rows` rows lie in the whole batch of `key`, if that says one.
OPENRNN_API void check_part(std::string_view call, const DropoutKey& key, std::int64_t rows);
/// Throws: UnsupportedError for a recompute other than 0 unless the engine recomputes().
OPENRNN_API void check_recompute(const Engine& engine, std::int64_t recompute);
/// Throws: UnsupportedError for a reserve unless the engine has reserve_bytes, ArgumentError for
/// one that is not aligned, or beside recompute.
OPENRNN_API void check_reserve(std::string_view call, const Engine& engine,
                               const ForwardArgs& args);
/// Throws: UnsupportedError when gradients of rows are asked of an engine without them,
/// ArgumentError when the rows of row_dparams do not lie in 0..batch.
OPENRNN_API void check_rows(const Engine& engine, const BackwardArgs& args, std::int64_t batch);
/// Throws: ArgumentError as RnnSpec::validate; EngineError when `engine` does not support the spec;
/// UnsupportedError for training with a weights_dtype.
OPENRNN_API void check_pack(const Engine& engine, const ValidSpec& spec, PackFor purpose);
/// Why the CPU engines cannot run the spec's math; empty when they can.
OPENRNN_API std::string unsupported_on_cpu(const RnnSpec& spec);

}  // namespace openrnn
