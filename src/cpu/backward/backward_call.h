// The backward call of the engine for one element type.
#pragma once

#include "cpu/steps/saved.h"

namespace openrnn::cpu {

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args);

extern template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
extern template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
