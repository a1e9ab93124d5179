// What is random in training around the engine: dropout of inputs and outputs, DropConnect.
#pragma once

#include <functional>

#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// rnn() of a network with TrainingOptions::drops_around(), by `run` of the same one without.
/// `key` is drawn by the caller, after its checks; not looked at unless in.training.
RnnOutputs run_with_masks(const RnnSpec& spec, const RnnInputs& in, DropoutKey key,
                          const std::function<RnnOutputs(const ValidSpec&, const RnnInputs&)>& run);

}  // namespace openrnn::ops
