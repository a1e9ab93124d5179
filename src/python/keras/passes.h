// Forward and backward of a recurrent layer of Keras, on its arrays.
#pragma once

#include "python/keras/cell.h"
#include "python/keras/steps.h"

namespace openrnn::python::keras {

/// What a call is besides its arrays.
struct Call {
  Steps steps;
  /// Whether the output is [B, T, U], else that of the last step, [B, U].
  bool sequences = false;
  /// Whether a step that does not count shows 0, else the output before it.
  bool zero = false;
};

/// x [B, T, I], h0 and c0 [B, U].
struct Inputs {
  const void* x = nullptr;
  const void* h0 = nullptr;  // null: zeros
  const void* c0 = nullptr;  // null: zeros
};
struct Outputs {
  void* y = nullptr;
  void* hn = nullptr;
  void* cn = nullptr;
};

/// What a forward call keeps for backward. Nothing writes into it again.
struct SavedCall {
  std::shared_ptr<Cell> cell;
  std::unique_ptr<SavedForward> forward;
  Call call;
  /// Of memory, about.
  std::int64_t bytes = 0;
};

/// Writes the outputs; with `saving` returns what backward needs, else null.
std::shared_ptr<const SavedCall> forward(const std::shared_ptr<Cell>& cell, const Weights& weights,
                                         Call call, const Inputs& in, const Outputs& out,
                                         bool saving);

/// Gradients of y, hn and cn in (null: zeros), of the inputs and weights out (null: not wanted).
void backward(const SavedCall& saved, const Inputs& from, const Outputs& to,
              const WeightGradients& weights);

}  // namespace openrnn::python::keras
