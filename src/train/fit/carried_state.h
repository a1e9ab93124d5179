// The recurrent state that a text run carries from window to window, by rows of the batch.
#pragma once

#include <map>

#include "openrnn/train_fit.h"

namespace openrnn::train {

/// States [L*D, B, .] of a batch, kept in the pieces in which they were computed. A process that
/// computes some parts of each step has the states of these alone.
class CarriedState {
 public:
  using Tensors = std::vector<Tensor>;
  /// Those of rows [first, first + count); empty: zeros.
  /// Throws: StateError where only some of the rows have a state.
  Tensors rows(std::int64_t first, std::int64_t count) const;
  /// Takes the place of what these rows had; empty: they have none.
  void set(std::int64_t first, std::int64_t count, Tensors state);
  void clear() { pieces_.clear(); }

 private:
  struct Piece {
    std::int64_t count;
    Tensors state;
  };
  std::map<std::int64_t, Piece> pieces_;  // by first row; they do not overlap
};

}  // namespace openrnn::train
