#include <algorithm>
#include <utility>

#include "cpu/backward/places.h"

namespace openrnn::cpu {
namespace {

constexpr std::int64_t kUnitsAtOnce = 64;

// The sums of a b over positions, for some units: in the order of sum_order.h for columns.
template <class T>
struct ProductSums {
  const Kernels<T>& kernels;
  const T* const* a;  // [k], from the gate's first unit on
  const T* const* b;
  const std::int64_t* groups;
  std::int64_t count;

  void over(std::int64_t first, std::int64_t units, T* sums) const {
    double span[kUnitsAtOnce];
    std::fill_n(sums, units, T{0});
    const std::int64_t* group = groups;
    for (std::int64_t k = 0, left = 0; k < count;) {
      if (left == 0) left = *group++;
      const std::int64_t end = k + std::min(left, kSumSpan);
      left -= end - k;
      std::fill_n(span, units, 0.0);
      add_blocks(k, end, first, units, span);
      for (std::int64_t i = 0; i < units; ++i) sums[i] += static_cast<T>(span[i]);
      k = end;
    }
  }

 private:
  void add_blocks(std::int64_t k, std::int64_t end, std::int64_t first, std::int64_t units,
                  double* span) const {
    double block[kUnitsAtOnce] = {};
    while (k < end) {
      const std::int64_t last = std::min(k + kSumBlock, end);
      for (; k < last; ++k) {
        kernels.add_product_wide(a[k] + first, b[k] + first, block, units);
      }
      for (std::int64_t i = 0; i < units; ++i) span[i] += std::exchange(block[i], 0.0);
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
  const Grid<T>& cells = run.saved.layers[static_cast<std::size_t>(layer)].c[d];
  const Grid<T>& da = run.scratch.da[d];
  // i and f see the cell before a step, o the one after it.
  for (const std::int64_t gate : {0, 1, 3}) {
    if (gate < 3) {
      point_before(shared, layer, direction, cells, 0, run.saved.c0, space.rows_b, space.groups);
    }
    const std::int64_t count =
        each_place(shared, space.groups, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
          space.rows_a[k] = da.at(t, b) + gate * units;
          if (gate == 3) space.rows_b[k] = cells.at(t, b);
        });
    const ProductSums<T> sums{shared.packed.kernels(), space.rows_a, space.rows_b, space.groups,
                              count};
    T* const to = run.dparams +
                  shared.packed.layout().bias(layer, direction, ParamRole::kPeephole, gate).offset;
    for (std::int64_t u = own.first; u < own.last; u += kUnitsAtOnce) {
      sums.over(u, std::min(kUnitsAtOnce, own.last - u), to + u);
    }
  }
}

template void peephole_gradients<float>(const BackwardRun<float>&, std::int64_t, std::int64_t,
                                        int) noexcept;
template void peephole_gradients<double>(const BackwardRun<double>&, std::int64_t, std::int64_t,
                                         int) noexcept;

}  // namespace openrnn::cpu
