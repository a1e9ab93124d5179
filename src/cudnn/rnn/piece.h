// One call of cuDNN, and its gradient.
#pragma once

#include <memory>
#include <mutex>

#include "cudnn/rnn/descriptors.h"
#include "cudnn/rnn/sequence.h"
#include "cudnn/rnn/weights.h"

namespace openrnn::cudnn {

/// Packed vectors and states of one call; null: as in ForwardArgs and BackwardArgs.
struct PieceForward {
  const void* x = nullptr;
  void* y = nullptr;
  const void *hx = nullptr, *cx = nullptr;
  void *hy = nullptr, *cy = nullptr;
};

struct PieceBackward {
  const void* dy = nullptr;
  const void *dhy = nullptr, *dcy = nullptr;
  void* dx = nullptr;
  void *dhx = nullptr, *dcx = nullptr;
  void* dweights = nullptr;  // added to; null: not wanted
};

/// What a call computes.
struct PieceCall {
  Context* context = nullptr;
  const PartWeights* weights = nullptr;
  Slice slice;
  /// Whether it saves what backward needs; dropout by cuDNN.
  bool training = false;
  OwnDropout dropout;
  /// Whether the choice of an algorithm is worth its trials.
  bool timed = true;
};

/// A call with one variant of algorithm. All methods are for a thread where the context is current.
class Piece {
 public:
  /// Throws: EngineError when cuDNN cannot run the variant.
  Piece(const PieceCall& call, const Variant& variant);

  const Variant& variant() const noexcept { return variant_; }
  /// Runs. When training, `memory` (its x, y, hx and cx) must not change while this object exists.
  /// Throws: EngineError as above.
  void forward(const PieceForward& memory);
  /// The gradient of the training call, the same at every call. cuDNN overwrites what its forward
  /// call saved, so the first gradient uses it up, and every later one repeats the forward call.
  /// Thread-safe.
  void backward(const PieceBackward& memory) const;

  /// What the training call saved for the first gradient; null once that is used up.
  const std::shared_ptr<void>& reserve() const noexcept { return reserve_; }
  /// To be called after a graph has run the call again, with weights at the same address as in the
  /// first run: the graph has filled `reserve`; null: its gradient repeats the call.
  void renew(const PartWeights& weights, std::shared_ptr<void> reserve) const;

 private:
  /// Elements of the arrays of a call.
  struct Sizes {
    std::int64_t x, y, h, c, weights;
  };
  Sizes sizes() const;
  void run_forward(cudnnHandle_t handle, const PieceForward& memory, void* reserve) const;
  void run_backward(cudnnHandle_t handle, const PieceBackward& memory, void* reserve) const;
  std::shared_ptr<void> take_reserve(cudnnHandle_t handle) const;
  std::shared_ptr<void> scratch(std::int64_t elements) const;

  Context& context_;
  mutable const PartWeights* weights_;
  Slice slice_;
  bool training_, drops_;
  Variant variant_;
  PieceForward memory_;
  // Calls with one descriptor are serialized: it is not documented what they keep in it.
  mutable std::mutex mutex_;
  std::unique_ptr<RnnDescriptor> rnn_;
  DataOwner x_, y_;
  TensorOwner h_, c_;
  std::size_t work_bytes_ = 0, reserve_bytes_ = 0;
  mutable std::shared_ptr<void> reserve_;  // until the first backward uses it up
};

/// Runs the call by the algorithm that algorithm_choice() says: named, or the fastest of those that
/// can, which is found by timing all of them at the first call of a shape and then remembered. What
/// cuDNN cannot run falls back to the standard algorithm.
std::unique_ptr<Piece> run_piece(const PieceCall& call, const PieceForward& memory);

/// What was chosen so far, a line each: "lstm of 16 units, 5 rows, below 8 steps, training:
/// standard".
std::vector<std::string> choices_so_far();

}  // namespace openrnn::cudnn
