// What goes wrong in the stand-in GPU: where persistent kernels are known to fail, and on request.
#pragma once

#include "cudnn/stand_in/rnn_on_cpu.h"

namespace openrnn::stand_in {

/// Throws: std::runtime_error, an illegal access, when CUDNN_RNN_ALGO_PERSIST_STATIC runs where it
/// is not known to be safe, unless STAND_IN_PERSIST_ANYWHERE is 1; and wherever it runs when
/// STAND_IN_FAULT_STATIC is 1.
void run_persistent(const RnnDescriptor& rnn, int rows);

// What STAND_IN_WRONG_STATIC names (hy, cy, dx, dhx, dcx, dweights) is twice what it should be
// after a call by that algorithm; 'inputs': hy is, and everything that the call read is NaN.
void spoil(const RnnCall& call);
void spoil(const RnnGradient& call);

}  // namespace openrnn::stand_in
