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
  /// Whether it keeps what backward needs, or drops out by cuDNN.
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
  /// Runs. When training, `memory` (its x, y, hx and cx) must stay as it is as long as this object.
  /// Throws: EngineError as above.
  void forward(const PieceForward& memory);
  /// The gradient of the training call, the same however often it is asked. cuDNN writes into what
  /// its forward call left, so the first asks for it as it is, and every later one repeats the
  /// forward call. Thread-safe.
  void backward(const PieceBackward& memory) const;

  /// What the training call left for the first gradient; null once that has had it.
  const std::shared_ptr<void>& reserve() const noexcept { return reserve_; }
  /// After a graph has run the call again: it has filled `reserve`, null if its gradient is to
  /// repeat the call, from weights that lie where those of the first run did.
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
  // Calls with one descriptor go one after another: it is not documented what they keep in it.
  mutable std::mutex mutex_;
  std::unique_ptr<RnnDescriptor> rnn_;
  DataOwner x_, y_;
  TensorOwner h_, c_;
  std::size_t work_bytes_ = 0, reserve_bytes_ = 0;
  mutable std::shared_ptr<void> reserve_;  // until the first backward takes it
};

/// Runs the call by the algorithm that algorithm_choice() says: named, or the fastest of those that
/// can, which is found by timing all of them at the first call of a shape and then remembered. What
/// cuDNN cannot run goes to the standard algorithm.
std::unique_ptr<Piece> run_piece(const PieceCall& call, const PieceForward& memory);

/// What was chosen so far, a line each: "lstm of 16 units, 5 rows, below 8 steps, training:
/// standard".
std::vector<std::string> choices_so_far();

}  // namespace openrnn::cudnn
