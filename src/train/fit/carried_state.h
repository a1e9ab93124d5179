// The recurrent state that a text run carries from window to window, by rows of the batch.
#pragma once

#include "openrnn/device.h"
#include "openrnn/train_fit.h"

namespace openrnn::train {

/// States [L*D, B, .] of a batch in the parts in which they were computed: those that a step starts
/// from, and those that it leaves. A process that computes some parts of each step has the states
/// of these alone.
class CarriedState {
 public:
  using Tensors = std::vector<Tensor>;
  /// Before the rows from `first` on. Those of a step are computed in their order; rows that the
  /// last step has begin the next one, which starts from what that left.
  void begin(std::int64_t first);
  /// What rows [first, first + count) start from; empty: zeros, as before the first step.
  /// Throws: StateError for rows without a state where others have one.
  Tensors before(std::int64_t first, std::int64_t count) const;
  /// What these rows leave.
  void leave(std::int64_t first, std::int64_t count, Tensors state);
  /// What the batch's rows left; after a step that was not finished, what that starts from.
  Tensors latest(std::int64_t batch) const;
  /// What the rows of all processes left, of which each has `own`: as many.
  void gather(Communicator& communicator, const ops::BatchPart& own);
  /// Of the whole batch, before the next step.
  void load(std::int64_t batch, Tensors state);

 private:
  struct Part {
    std::int64_t first, count;
    Tensors state;
  };
  using Parts = std::vector<Part>;  // in the order of the rows
  static std::int64_t covered(const Parts& parts, std::int64_t first, std::int64_t count);
  static Tensors rows(const Parts& parts, std::int64_t first, std::int64_t count);
  Parts before_, left_;
};

}  // namespace openrnn::train
