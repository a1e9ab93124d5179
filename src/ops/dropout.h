// Dropout, and where the rows of a part of a batch lie in what it is given.
#pragma once

#include "openrnn/ops_part.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// An array is [before, batch, after, C].
struct BatchPlace {
  std::int64_t before = 1, after = 1;
};

/// Throws: ArgumentError unless that axis of the shape, which is not its last one, has rows that
/// lie in the key's batch.
BatchPlace place_along(const Shape& shape, std::size_t batch_axis, const DropoutKey& key);
/// As dropout().
Tensor dropout_along(const Tensor& x, double rate, DropoutKey key, std::size_t batch_axis);

/// For a call that draws masks. Throws: in a PartScope ArgumentError unless its batch has the
/// part's rows, UnsupportedError for flags, which make other rows of them.
void check_rows_of_part(const RnnInputs& in);

}  // namespace openrnn::ops
