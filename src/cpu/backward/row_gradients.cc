#include <algorithm>

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {
namespace {

// Over the vectors of a layer.
template <class T>
double squares_of_vectors(const CpuPacked<T>& packed, std::int64_t layer, const T* dparams) {
  double total = 0.0;
  for (const ParamRegion& region : packed.layout().biases()) {
    const T* const values = dparams + region.offset;
    if (region.layer == layer) total += packed.kernels().dot_wide(values, values, region.size());
  }
  return total;
}

}  // namespace

template <class T>
void row_gradients(const BackwardRun<T>& run, std::int64_t layer, int thread) noexcept {
  const RowGradients<T>& rows = run.rows;
  const CpuPacked<T>& packed = run.shared.packed;
  const std::int64_t size = packed.layout().size();
  const BackwardSpace<T>& space = run.scratch.threads[thread];
  const int threads = run.shared.plan.threads();
  const auto part = [&](std::int64_t b, T* dparams, double* squares) {
    return GradientPart<T>{.first_row = b,
                           .last_row = b + 1,
                           .dparams = dparams,
                           .accumulate = run.accumulate,
                           .space = space,
                           .squares = squares};
  };
  for (std::int64_t b = rows.first + thread; rows.dparams && b < rows.last; b += threads) {
    weight_gradients(run, part(b, rows.dparams + (b - rows.first) * size, nullptr), layer);
  }
  for (std::int64_t b = thread; rows.norms && b < run.shared.args.batch; b += threads) {
    weight_gradients(run, part(b, space.row_params, &rows.norms[b]), layer);
    rows.norms[b] += squares_of_vectors(packed, layer, space.row_params);
  }
}

template void row_gradients<float>(const BackwardRun<float>&, std::int64_t, int) noexcept;
template void row_gradients<double>(const BackwardRun<double>&, std::int64_t, int) noexcept;

}  // namespace openrnn::cpu
