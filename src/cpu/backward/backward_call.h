// The backward call of the engine for one element type.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// Those of the caller.
template <class T>
StateGradients<T> state_gradients(const RnnSpec& spec, const ForwardArgs& call,
                                  const BackwardArgs& args);

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args);

extern template StateGradients<float> state_gradients<float>(const RnnSpec&, const ForwardArgs&,
                                                             const BackwardArgs&);
extern template StateGradients<double> state_gradients<double>(const RnnSpec&, const ForwardArgs&,
                                                               const BackwardArgs&);
extern template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
extern template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
