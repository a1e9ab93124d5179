// The recurrent operation on symbolic tensors.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

bool is_symbolic(const RnnInputs& in);
/// Records a call that `run` makes once there are values. Throws: ArgumentError where what is known
/// of the shapes cannot fit `spec`.
RnnOutputs defer_rnn(const RnnSpec& spec, const RnnInputs& in,
                     std::function<RnnOutputs(const RnnInputs& given)> run);
/// What the outputs are: y, h and for lstm c; time and batch -1 where they are not known.
std::vector<TensorSpec> rnn_specs(const RnnSpec& spec, const Shape& x, bool time_major);

}  // namespace openrnn::ops
