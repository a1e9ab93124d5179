// What the gradient of a recurrent call needs, and the gradient of that.
#pragma once

#include "openrnn/graph_rows.h"
#include "openrnn/ops_rnn.h"

namespace openrnn::ops::gradients {

/// What one call leaves for its gradient; the engine's part owns its memory.
struct SavedCall {
  std::string call;
  const Engine* engine = nullptr;
  const Device* device = nullptr;
  /// Null: the call was one for inference, and its gradient is an error.
  std::shared_ptr<const SavedForward> forward;
  ValidSpec spec;
  Shape x_shape, h_shape, c_shape, params_shape;
  bool time_major = true, training = true, recomputes = false;
  std::optional<std::vector<std::int32_t>> lengths;
  DropoutKey dropout;

  /// Of the wanted ones of x, h0, c0, params; the others are empty.
  std::vector<DeviceArray> gradient(const std::vector<DeviceArray>& outputs,
                                    const std::vector<bool>& wanted) const;
};

/// The gradients of such a call row by row of the batch. Throws: UnsupportedError for an engine
/// that does not have them, or where rows of the batch meet.
std::vector<RowGradient> row_gradients(const std::shared_ptr<const SavedCall>& saved,
                                       const RowCall& call);

/// Records the call on {x, h0, c0, params}. The gradient of its gradient, and products with its
/// Jacobian, are computed in dual numbers on the host.
std::vector<Tensor> record_call(const std::vector<Tensor>& inputs, std::vector<DeviceArray> outputs,
                                SavedCall saved);

}  // namespace openrnn::ops::gradients
