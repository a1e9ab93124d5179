// The places of sums over time and batch, in the order of sum_order.h.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// Calls visit(t, b, k) for every valid position of the part's rows, the k-th in the order; writes
/// how many each group of steps has to the groups of its space, and returns how many there are.
template <class T, class F>
std::int64_t each_place(const StepContext<T>& shared, const GradientPart<T>& part, F visit) {
  std::int64_t* groups = part.space.groups;
  std::int64_t count = 0;
  for (std::int64_t last = shared.args.max_time; last > 0;) {
    const std::int64_t first = (last - 1) / kGradientSteps * kGradientSteps, before = count;
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t b = part.first_row; b < part.last_row; ++b) {
        if (t < shared.rows.length(b)) visit(t, b, count++);
      }
    }
    if (count > before) *groups++ = count - before;
    last = first;
  }
  return count;
}

/// Points at the rows of a state before each place: `states` are those after each step, [T][B] rows
/// from `side` on; `start` those before the first, base null: zeros.
template <class T>
struct StatesBefore {
  std::int64_t layer, direction;
  const Grid<T>& states;
  std::int64_t side;
  const Grid<T>& start;
};
template <class T>
void point_before(const StepContext<T>& shared, const GradientPart<T>& part,
                  const StatesBefore<T>& before, const T** rows) {
  const bool forward = before.direction == 0;
  const std::int64_t p = before.layer * shared.spec().num_dirs() + before.direction;
  each_place(shared, part, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
    const bool first = forward ? t == 0 : t == shared.rows.length(b) - 1;
    const T* const initial = before.start.base ? before.start.at(p, b) : shared.packed.zeros();
    rows[k] = first ? initial : before.states.at(forward ? t - 1 : t + 1, b) + before.side;
  });
}

}  // namespace openrnn::cpu
