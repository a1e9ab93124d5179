// Forward and backward of a recurrent layer of Keras, or of two directions at once, on its arrays.
#pragma once

#include "python/keras/cell.h"
#include "python/keras/steps.h"

namespace openrnn::python::keras {

/// What a call is besides its arrays.
struct Call {
  Steps steps;
  /// Whether the output is [B, T, D*U], else those of the last steps, [B, D*U].
  bool sequences = false;
  /// Whether a step that does not count shows 0, else the output before it.
  bool zero = false;
  /// Threads that it and its backward may use; 0: num_threads().
  int threads = 0;
};

/// A sequence, and states [B, U] of each direction: x [B, T, I], h0 and c0; or gradients of y, hn
/// and cn. Null: zeros; not x.
struct Given {
  const void* sequence = nullptr;
  Both<const void*> h{}, c{};
};
/// The same to be written: y, hn and cn; or gradients of x, h0 and c0, null for those that are not
/// wanted.
struct Made {
  void* sequence = nullptr;
  Both<void*> h{}, c{};
};

/// What a forward call keeps for backward. Nothing writes into it again.
struct SavedCall {
  std::shared_ptr<Cell> cell;
  std::unique_ptr<SavedForward> forward;
  Call call;
  /// Of memory, about.
  std::int64_t bytes = 0;
};

/// What forward keeps, and where.
struct Saving {
  bool wanted = false;
  /// As ForwardArgs::reserve.
  void* reserve = nullptr;
};

/// Writes the outputs; where it is wanted returns what backward needs, else null.
std::shared_ptr<const SavedCall> forward(const std::shared_ptr<Cell>& cell,
                                         const Both<Weights>& weights, Call call, const Given& in,
                                         const Made& out, const Saving& saving);
/// Bytes of the reserve of a call with initial states; unset where the engine has none.
std::optional<std::int64_t> reserve_bytes(const Cell& cell, std::int64_t time, std::int64_t batch);
/// What forward of such a call, with the same steps, has left in a reserve.
SavedCall saved_in(const std::shared_ptr<Cell>& cell, const Both<Weights>& weights, Call call,
                   void* reserve);

void backward(const SavedCall& saved, const Given& from, const Made& to,
              const Both<WeightGradients>& weights);

}  // namespace openrnn::python::keras
