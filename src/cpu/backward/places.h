// The places of sums over time and batch, in the order of sum_order.h.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// Calls visit(t, b, k) for every valid position, the k-th in the order; writes how many each group
/// of steps has to `groups`, and returns how many there are.
template <class T, class F>
std::int64_t each_place(const StepContext<T>& shared, std::int64_t* groups, F visit) {
  std::int64_t count = 0;
  for (std::int64_t last = shared.args.max_time; last > 0;) {
    const std::int64_t first = (last - 1) / kGradientSteps * kGradientSteps, before = count;
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t b = 0; b < shared.args.batch; ++b) {
        if (t < shared.rows.length(b)) visit(t, b, count++);
      }
    }
    if (count > before) *groups++ = count - before;
    last = first;
  }
  return count;
}

/// Points at the rows of a state before each place: `states` are those after each step, [T][B] rows
/// from `side` on; `start` those before the first, base null: zeros. `groups` as in each_place.
template <class T>
void point_before(const StepContext<T>& shared, std::int64_t layer, std::int64_t direction,
                  const Grid<T>& states, std::int64_t side, const Grid<T>& start, const T** rows,
                  std::int64_t* groups) {
  const std::int64_t p = layer * shared.spec().num_dirs() + direction;
  const std::int64_t back = direction == 0 ? -1 : 1;
  each_place(shared, groups, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
    const bool first = direction == 0 ? t == 0 : t == shared.rows.length(b) - 1;
    const T* const initial = start.base ? start.at(p, b) : shared.packed.zeros();
    rows[k] = first ? initial : states.at(t + back, b) + side;
  });
}

}  // namespace openrnn::cpu
