// Networks with other biases that compute the same.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The network with 0, 1 or 2 biases a gate. One becomes two with the recurrent one 0; two become
/// their sum, rounded once. Slots keep what belongs to the input's bias, and two get it both.
/// Throws: UnsupportedError where the network would be another one: biases that are not 0 would
/// go, or a GRU that resets after the product would lose the candidate's recurrent bias.
MappedNetwork with_biases(const MappedNetwork& network, int per_gate);

/// The network with forget_bias 0: it joins the forget gate's bias (rounded once), which is made
/// where there is none.
MappedNetwork without_forget_bias(const MappedNetwork& network);

}  // namespace openrnn::mapping
