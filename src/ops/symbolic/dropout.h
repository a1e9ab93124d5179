// Dropout of symbolic tensors.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// Records next_dropout: its first computation draws the masks of the key, each further one the
/// next, as calls on values do.
Tensor record_dropout(const Tensor& x, double rate, const DropoutKey& key);

/// Computes what that recorded.
std::vector<Tensor> run_recorded_dropout(const std::vector<Tensor>& inputs,
                                         const Attributes& attributes, const Replay& replay);

}  // namespace openrnn::ops
