#include <algorithm>
#include <utility>

#include "cpu/backward/places.h"

namespace openrnn::cpu {
namespace {

constexpr std::int64_t kUnitsAtOnce = 64;
// i, f and o, of which the last one sees the cell after a step.
constexpr std::int64_t kGates[] = {0, 1, 3};
constexpr std::int64_t kSeeing = 3;

using Sums = double[kSeeing][kUnitsAtOnce];

void move(Sums& from, std::int64_t units, Sums& to) {
  for (std::int64_t n = 0; n < kSeeing; ++n) {
    for (std::int64_t i = 0; i < units; ++i) to[n][i] += std::exchange(from[n][i], 0.0);
  }
}

// The sums of gate gradients times cells over all places, in the order of sum_order.h for columns.
template <class T>
struct PeepholeSums {
  const Kernels<T>& kernels;
  const BackwardSpace<T>& space;  // rows_a: gate gradients, rows_b: cells before, rows_h: after
  std::int64_t count, all_units;
  bool accumulate;

  /// Of `units` units from `first` on; to[n] is the gradient of the n-th peephole.
  void over(std::int64_t first, std::int64_t units, T* const (&to)[kSeeing]) const {
    for (T* const sums : to) {
      if (!accumulate) std::fill_n(sums + first, units, T{0});
    }
    const std::int64_t* group = space.groups;
    for (std::int64_t k = 0, left = 0; k < count;) {
      if (left == 0) left = *group++;
      const std::int64_t end = k + std::min(left, kSumSpan);
      left -= end - k;
      Sums span = {};
      add_span(k, end, first, units, span);
      for (std::int64_t n = 0; n < kSeeing; ++n) {
        for (std::int64_t i = 0; i < units; ++i) to[n][first + i] += static_cast<T>(span[n][i]);
      }
      k = end;
    }
  }

 private:
  // Rows lie too far apart for the hardware prefetcher.
  void fetch(std::int64_t k, std::int64_t first, std::int64_t units) const {
    const auto lines = [&](const T* from) {
      constexpr std::int64_t kLine = 64 / sizeof(T);
      for (std::int64_t i = 0; i < units; i += kLine) __builtin_prefetch(from + first + i);
    };
    for (const std::int64_t gate : kGates) lines(space.rows_a[k] + gate * all_units);
    lines(space.rows_b[k]);
    lines(space.rows_h[k]);
  }
  void add_span(std::int64_t k, std::int64_t end, std::int64_t first, std::int64_t units,
                Sums& span) const {
    Sums block = {};
    while (k < end) {
      for (const std::int64_t last = std::min(k + kSumBlock, end); k < last; ++k) {
        fetch(std::min(k + kRowsAhead, count - 1), first, units);
        const T* const cells[] = {space.rows_b[k], space.rows_b[k], space.rows_h[k]};
        for (std::int64_t n = 0; n < kSeeing; ++n) {
          const T* const gradient = space.rows_a[k] + kGates[n] * all_units + first;
          kernels.add_product_wide(gradient, cells[n] + first, block[n], units);
        }
      }
      move(block, units, span);
    }
  }
};

}  // namespace

template <class T>
void peephole_gradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction,
                        int thread) noexcept {
  const StepContext<T>& shared = run.shared;
  const std::int64_t units = shared.spec().num_units;
  const Share own(units, kUnitsAtOnce, thread, shared.plan.threads());
  if (own.first >= own.last) return;
  const BackwardSpace<T>& space = run.scratch.threads[thread];
  const auto d = static_cast<std::size_t>(direction);
  const LayerStore<T>& store = run.saved.layers[static_cast<std::size_t>(layer)];
  const Grid<T>& cells = store.c[d];
  const Grid<T>& now = store.c_now[d].base ? store.c_now[d] : cells;
  // A peephole joins after layer normalization.
  const Grid<T>& da = shared.spec().normalizes() ? run.scratch.dsums[d] : run.scratch.da[d];
  point_before(shared, layer, direction, cells, 0, run.saved.c0, space.rows_b, space.groups);
  const std::int64_t count =
      each_place(shared, space.groups, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        space.rows_a[k] = da.at(t, b);
        space.rows_h[k] = now.at(t, b);
      });
  const PeepholeSums<T> sums{shared.packed.kernels(), space, count, units, run.accumulate};
  T* to[kSeeing];
  for (std::int64_t n = 0; n < kSeeing; ++n) {
    const ParamRegion& region =
        shared.packed.layout().bias(layer, direction, ParamRole::kPeephole, kGates[n]);
    to[n] = run.dparams + region.offset;
  }
  for (std::int64_t u = own.first; u < own.last; u += kUnitsAtOnce) {
    sums.over(u, std::min(kUnitsAtOnce, own.last - u), to);
  }
}

template void peephole_gradients<float>(const BackwardRun<float>&, std::int64_t, std::int64_t,
                                        int) noexcept;
template void peephole_gradients<double>(const BackwardRun<double>&, std::int64_t, std::int64_t,
                                         int) noexcept;

}  // namespace openrnn::cpu
