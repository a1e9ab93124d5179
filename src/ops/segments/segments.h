// Calls with masked steps and resets, as calls of sequences without.
#pragma once

#include <functional>

#include "openrnn/ops_rnn.h"

namespace openrnn::ops {

/// rnn() of inputs with flags: its sequences are gathered, computed by `run`, and put back.
RnnOutputs run_in_segments(const RnnSpec& spec, const RnnInputs& inputs,
                           const std::function<RnnOutputs(const RnnInputs&)>& run);

}  // namespace openrnn::ops
