// The backward call on what forward_recomputed_call kept.
#pragma once

#include "cpu/steps/recomputed.h"

namespace openrnn::cpu {

template <class T>
void backward_recomputed_call(const CpuRecomputed<T>& saved, const BackwardArgs& args);

extern template void backward_recomputed_call<float>(const CpuRecomputed<float>&,
                                                     const BackwardArgs&);
extern template void backward_recomputed_call<double>(const CpuRecomputed<double>&,
                                                      const BackwardArgs&);

}  // namespace openrnn::cpu
