// What an engine is: the recurrent computation behind one interface, on plain pointers.
#pragma once

#include <memory>
#include <string>

#include "openrnn/params.h"

namespace openrnn {

/// What packed weights will be used for: backward reads other forms of them than forward.
enum class PackFor : std::uint8_t { kInference, kTraining };

/// Parameters in an engine's own form, made once. Immutable: any number of threads may use one.
class OPENRNN_API PackedParams {
 public:
  explicit PackedParams(const RnnSpec& spec, PackFor purpose) : spec_(spec), purpose_(purpose) {}
  virtual ~PackedParams() = default;
  PackedParams(const PackedParams&) = delete;
  PackedParams& operator=(const PackedParams&) = delete;
  const RnnSpec& spec() const noexcept { return spec_; }
  PackFor purpose() const noexcept { return purpose_; }

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

/// What one forward call left for backward. It owns all of it (no memory of the caller's), and
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
  const void* c0 = nullptr;  // [L*D, B, U]; null: zeros; lstm only
  void* y = nullptr;
  void* hn = nullptr;  // null: not wanted
  void* cn = nullptr;  // null: not wanted; lstm only
  /// Whether dropout between layers is on; its masks are those of dropout_mask with `dropout`, over
  /// all D*O units of a layer's output at original time and row.
  bool training = false;
  DropoutKey dropout;
};

/// One backward call. Shapes and layouts as in the forward call.
struct BackwardArgs {
  const SavedForward* saved = nullptr;
  const void* dy = nullptr;   // null: zeros. Padded positions are never read.
  const void* dhn = nullptr;  // null: zeros
  const void* dcn = nullptr;  // null: zeros; lstm only
  void* dx = nullptr;         // null: not wanted, as all below
  void* dh0 = nullptr;
  void* dc0 = nullptr;
  /// A buffer of the opaque layout, overwritten with the gradient.
  void* dparams = nullptr;
};

/// An implementation of the recurrent computation. Stateless and thread-safe.
class OPENRNN_API Engine {
 public:
  virtual ~Engine() = default;
  /// 'reference', 'cpu', 'cudnn'.
  virtual std::string_view name() const = 0;
  /// One line for people: what it runs on, such as the instruction set.
  virtual std::string description() const = 0;
  /// Why this engine cannot run `spec`; empty when it can.
  virtual std::string unsupported(const RnnSpec& spec) const = 0;
  /// `params` is the opaque buffer, at least params_size(spec) long.
  virtual std::shared_ptr<const PackedParams> pack(const RnnSpec& spec,
                                                   const ConstArrayView& params,
                                                   PackFor purpose) const = 0;
  virtual std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                                    std::int64_t max_batch,
                                                    std::int64_t max_time) const = 0;
  /// Runs without saving. With a workspace of sufficient size it allocates nothing; with null it
  /// makes its own. Throws: ArgumentError as check_forward, or for a workspace too small.
  virtual void forward(const ForwardArgs& args, Workspace* workspace = nullptr) const = 0;
  /// Runs and keeps what backward needs; the params must be packed for training.
  virtual std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const = 0;
  /// The gradient of the saved call; the same bits however often it is asked.
  virtual void backward(const BackwardArgs& args) const = 0;
};

/// Throws: ArgumentError when sizes are negative, a needed pointer is null, or a length lies
/// outside 0..T (naming its row and value).
OPENRNN_API void check_forward(std::string_view call, const ForwardArgs& args);

}  // namespace openrnn
