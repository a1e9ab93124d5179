// The recurrent operation on symbolic tensors.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

bool is_symbolic(const RnnInputs& in);
/// A state as a call of that layout reads it: transposed where a call of the other layout returned
/// it. A tensor that no call returned is taken as it is.
Tensor state_as(const Tensor& state, bool time_major);
/// The outputs, states being marked with the layout that they have.
RnnOutputs with_layout(RnnOutputs out, bool time_major);

/// Records a call that `run` makes once there are values. Throws: ArgumentError where what is known
/// of the shapes cannot fit `spec`.
RnnOutputs defer_rnn(const RnnSpec& spec, const RnnInputs& in,
                     std::function<RnnOutputs(const RnnInputs& given)> run);
/// What the outputs are: y, h and for lstm c; time and batch -1 where they are not known.
std::vector<TensorSpec> rnn_specs(const RnnSpec& spec, const Shape& x, bool time_major);

}  // namespace openrnn::ops
