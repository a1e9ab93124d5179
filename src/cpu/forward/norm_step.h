// A step of a cell with layer normalization.
#pragma once

#include "cpu/forward/forward_run.h"

namespace openrnn::cpu {

/// The products of the member's units for all rows, then, as a row's statistics need all units,
/// whole rows of it: from the products to the state.
template <class T>
void run_norm_step(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                   std::int64_t direction, std::int64_t step, const ForwardStep<T>& call) noexcept;

extern template void run_norm_step<float>(const ForwardRun<float>&, const ForwardMember<float>&,
                                          std::int64_t, std::int64_t, std::int64_t,
                                          const ForwardStep<float>&) noexcept;
extern template void run_norm_step<double>(const ForwardRun<double>&, const ForwardMember<double>&,
                                           std::int64_t, std::int64_t, std::int64_t,
                                           const ForwardStep<double>&) noexcept;

}  // namespace openrnn::cpu
