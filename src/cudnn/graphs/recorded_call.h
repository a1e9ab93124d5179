// One call of the engine, and its gradient, as graphs.
#pragma once

#include <atomic>
#include <optional>

#include "cudnn/device/graph.h"
#include "cudnn/graphs/call_arrays.h"
#include "cudnn/graphs/call_key.h"

namespace openrnn::cudnn {

/// Which arrays of a backward call are given: dy, dhn, dcn, dx, dh0, dc0, dparams.
using GivenArrays = std::array<bool, 7>;
GivenArrays given_of(const BackwardArgs& args, const RnnSpec& spec);

/// Blocks that a call with the same key used without a graph.
using BlockSizes = std::vector<std::size_t>;

/// A forward call whose graph, arrays and saved values have their own memory, so that one saved
/// call at a time can be in use. Does not own the weights that it reads: the key has their
/// addresses. Not thread-safe, except release() and is_idle(); all others are for a thread where
/// the context is current.
class RecordedCall {
 public:
  /// Records without running. Throws: EngineError when that is not possible.
  RecordedCall(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args,
               const CallKey& key, const BlockSizes& blocks);

  /// Description of the recorded call.
  const std::string& text() const noexcept { return text_; }
  /// Runs the call with other arrays and parameters of the same key. When saving it is in use until
  /// it is released.
  void forward(const std::shared_ptr<const CudnnPacked>& packed, const ForwardArgs& args);
  bool is_idle() const noexcept { return !in_use_.load(std::memory_order_acquire); }
  void release() noexcept;

  /// What the last forward call saved, for gradients that no graph runs.
  const CudnnSaved& saved() const noexcept { return saved_; }
  /// Whether the next gradient is the first of the last forward call, with unchanged weights.
  bool may_run_gradient() const;
  bool has_gradient() const noexcept { return gradient_.has_value(); }
  /// Records the gradient. Throws: as the constructor.
  void record_gradient(const BackwardArgs& args, const BlockSizes& blocks);
  /// Runs it if it was recorded for these arrays; false: it was not.
  bool run_gradient(const BackwardArgs& args);
  /// From now on gradients of the last forward call repeat it.
  void spend_gradient() noexcept { fresh_ = false; }

 private:
  struct Gradient {
    GivenArrays given;
    Arena arena;
    CallArrays arrays;
    std::unique_ptr<Graph> graph;
    Gradient(Context& context, const GivenArrays& which)
        : given(which), arena(context.pool()), arrays(context) {}
  };
  ForwardArgs own_forward(const ForwardArgs& args);
  BackwardArgs own_backward(const BackwardArgs& args, CallArrays& arrays) const;
  void renew(bool with_reserves) const;

  Context& context_;
  const CallKey key_;
  const std::string text_;
  Arena arena_;
  CallArrays arrays_;
  CudnnSaved saved_;
  std::vector<std::shared_ptr<void>> reserves_;  // of each stage
  std::unique_ptr<Graph> graph_;
  std::optional<Gradient> gradient_;
  bool fresh_ = false;
  std::atomic<bool> in_use_{false};
};

}  // namespace openrnn::cudnn
