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

/// Those that the caller wants; `wide` is memory for those of 16 bits.
template <class T>
RowGradients<T> rows_wanted(const RnnSpec& spec, const BackwardArgs& args, T* wide) {
  const bool half = is_16_bit_float(spec.dtype);
  return {.norms = args.row_norms,
          .dparams = half ? wide : static_cast<T*>(args.row_dparams),
          .first = args.first_row,
          .last = args.last_row,
          .narrow_to = half ? static_cast<std::uint16_t*>(args.row_dparams) : nullptr};
}

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
