// The recurrent operation on symbolic tensors.
#pragma once

#include "openrnn/graph_symbolic.h"
#include "openrnn/ops_cudnn.h"

namespace openrnn::ops {

bool is_symbolic(const RnnInputs& in);
/// A state as a call of that layout reads it: transposed where a call of the other layout returned
/// it. Any other tensor is used as it is.
Tensor state_as(const Tensor& state, bool time_major);
/// The key of a call that is not refused.
DropoutKey dropout_key(const RnnInputs& in);
/// The outputs, states marked with their layout.
RnnOutputs with_layout(RnnOutputs out, bool time_major);

/// The op-level model whose call it is; empty: none.
struct ModelOfCall {
  const Device* device = nullptr;
  std::shared_ptr<CudnnModelState> state = {};
};
/// Computes a call.
RnnOutputs run_model(const ValidSpec& spec, RnnInputs given, const ModelOfCall& model);
/// Records a call. Throws: ArgumentError where what is known of the shapes cannot fit `spec`.
RnnOutputs defer_rnn(const RnnSpec& spec, const RnnInputs& in, const ModelOfCall& model);
/// The operation that it records.
std::vector<Tensor> run_recorded_rnn(const std::vector<Tensor>& inputs,
                                     const Attributes& attributes, const Replay& replay);
/// The weights and then the biases of an opaque buffer, as CudnnRnnModel::params_to_canonical.
OPENRNN_API std::vector<Tensor> canonical_tensors(const Tensor& params, const RnnSpec& spec);
/// Specs of the outputs: y, h and for lstm c; time and batch -1 where they are not known.
std::vector<TensorSpec> rnn_specs(const RnnSpec& spec, const Shape& x, bool time_major);

}  // namespace openrnn::ops
