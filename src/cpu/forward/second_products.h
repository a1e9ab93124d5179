// What a step does after its first product: the candidate of a GRU that resets before the product,
// and projections.
#pragma once

#include "cpu/forward/forward_run.h"

namespace openrnn::cpu {

/// n = f(W x + R (r h)) and the new state, where `call` has left r h beside the gates.
template <class T>
void multiply_reset_state(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                          std::int64_t direction, ForwardStep<T> call) noexcept;

/// h = Wp h~, clipped.
template <class T>
void project_output(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                    std::int64_t direction, std::int64_t step, const ForwardStep<T>& call) noexcept;

extern template void multiply_reset_state<float>(const ForwardRun<float>&,
                                                 const ForwardMember<float>&, std::int64_t,
                                                 std::int64_t, ForwardStep<float>) noexcept;
extern template void multiply_reset_state<double>(const ForwardRun<double>&,
                                                  const ForwardMember<double>&, std::int64_t,
                                                  std::int64_t, ForwardStep<double>) noexcept;
extern template void project_output<float>(const ForwardRun<float>&, const ForwardMember<float>&,
                                           std::int64_t, std::int64_t, std::int64_t,
                                           const ForwardStep<float>&) noexcept;
extern template void project_output<double>(const ForwardRun<double>&, const ForwardMember<double>&,
                                            std::int64_t, std::int64_t, std::int64_t,
                                            const ForwardStep<double>&) noexcept;

}  // namespace openrnn::cpu
