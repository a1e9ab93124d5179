#include "cpu/backward/blocks.h"

#include <algorithm>

#include "cpu/plan/plan.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

template <class T>
bool multiply_in_blocks(const CpuPacked<T>& packed, Panels<T>& w,
                        const RowsProduct<T>& call) noexcept {
  const auto panel = static_cast<std::size_t>(w.b_step) * sizeof(T);
  // Whole spans: the part of a k is one, too, where the arithmetic has none.
  const auto fit = static_cast<std::int64_t>(l2_bytes() / kL2PartOfBlock / panel);
  const std::int64_t block = std::max(fit / kSumSpan, std::int64_t{1}) * kSumSpan;
  if (w.k <= 2 * block || call.rows <= kFewRows) return call.accumulate;
  const std::int64_t inner = values_in(packed.arithmetic(), block);
  bool begun = call.accumulate;
  while (w.k > block) {
    Panels<T> part = w;
    part.k = block;
    part.inner = inner;
    packed.kernels().product({.w = part,
                              .a = call.a,
                              .a_step = 1,
                              .rows = call.rows,
                              .accumulate = begun,
                              .c = call.c,
                              .columns = call.columns});
    begun = true;
    for (std::int64_t i = 0; i < call.rows; ++i) call.a[i] += inner;
    w.b += block * (has_tiles(packed.arithmetic()) ? packed.kernels().lanes : w.b_step);
    w.k -= block;
    w.inner -= inner;
  }
  return begun;
}

template bool multiply_in_blocks<float>(const CpuPacked<float>&, Panels<float>&,
                                        const RowsProduct<float>&) noexcept;
template bool multiply_in_blocks<double>(const CpuPacked<double>&, Panels<double>&,
                                         const RowsProduct<double>&) noexcept;

}  // namespace openrnn::cpu
