// The backward call of the engine for one element type.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// Where the pass reads or writes an array of the caller: there, or in its wide copy; base null
/// where there is none.
template <class T>
Grid<T> grid_of(const UserRows<T>& user, T* wide, std::int64_t batch, std::int64_t width) {
  if (!user.base) return {};
  if (wide) return {wide, batch * width, width};
  return {static_cast<T*>(const_cast<void*>(user.base)), user.step, user.row};
}

/// Those of the caller.
template <class T>
StateGradientRows<T> state_gradients(const RnnSpec& spec, const ForwardArgs& call,
                                     const BackwardArgs& args);

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args);

extern template StateGradientRows<float> state_gradients<float>(const RnnSpec&, const ForwardArgs&,
                                                                const BackwardArgs&);
extern template StateGradientRows<double> state_gradients<double>(const RnnSpec&,
                                                                  const ForwardArgs&,
                                                                  const BackwardArgs&);
extern template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
extern template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
