// The places of sums over time and batch, in the order of sum_order.h, and gradients that are sums
// over them of one column: those of biases, gains and peepholes.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

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

/// What a parameter's gradient sums over all places: a column of BackwardSpace::rows_a, times one
/// of `factors` or alone.
template <class T>
struct PlaceTerm {
  std::int64_t gradient;
  const T* const* factors;  // a row for each place; null: alone
  std::int64_t factor;
  T* to;
  T* second = nullptr;  // the other bias that joins the same sums, or null
};

template <class T>
struct PlaceTerms {
  // LSTM with layer normalization: four biases, four gains of each side, gain and bias of the cell.
  static constexpr std::int64_t kMost = 14;

  std::array<PlaceTerm<T>, kMost> at;
  std::int64_t count = 0;

  void add(const PlaceTerm<T>& term) { at[static_cast<std::size_t>(count++)] = term; }
  const PlaceTerm<T>* begin() const { return at.data(); }
  const PlaceTerm<T>* end() const { return at.data() + count; }
};

/// The sums of all terms, in the order of sum_order.h for columns.
template <class T>
class PlaceSums {
 public:
  /// The part's space has the rows of `count` places and the sizes of their groups.
  PlaceSums(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t count)
      : kernels_(run.shared.packed.kernels()),
        space_(part.space),
        count_(count),
        accumulate_(part.accumulate) {}

  /// Of the part's own share of `units` columns.
  void over_share(const PlaceTerms<T>& terms, const Share& own) const {
    for (std::int64_t u = own.first; u < own.last; u += kUnitsAtOnce) {
      over(terms, u, std::min(kUnitsAtOnce, own.last - u));
    }
  }

  static Share share(const StepContext<T>& shared, const GradientPart<T>& part) {
    return Share(shared.spec().num_units, kShareUnits, part.share, part.shares);
  }

 private:
  // Long pieces of a row suit the hardware prefetcher; a thread may have half of one.
  static constexpr std::int64_t kUnitsAtOnce = 128, kShareUnits = 64;
  // Fewer lines a place than kRowsAhead is for.
  static constexpr std::int64_t kPlacesAhead = 8;
  using Sums = double[PlaceTerms<T>::kMost][kUnitsAtOnce];

  void over(const PlaceTerms<T>& terms, std::int64_t first, std::int64_t units) const {
    for (const PlaceTerm<T>& term : terms) {
      if (!accumulate_) std::fill_n(term.to + first, units, T{0});
    }
    Sums span;
    const std::int64_t* group = space_.groups;
    for (std::int64_t k = 0, left = 0; k < count_;) {
      if (left == 0) left = *group++;
      const std::int64_t end = k + std::min(left, kSumSpan);
      left -= end - k;
      sum_span(terms, k, end, first, units, span);
      for (std::int64_t n = 0; n < terms.count; ++n) {
        T* const to = terms.begin()[n].to + first;
        for (std::int64_t i = 0; i < units; ++i) to[i] += static_cast<T>(span[n][i]);
      }
      k = end;
    }
    for (const PlaceTerm<T>& term : terms) {
      if (term.second) std::copy_n(term.to + first, units, term.second + first);
    }
  }

  void sum_span(const PlaceTerms<T>& terms, std::int64_t k, std::int64_t end, std::int64_t first,
                std::int64_t units, Sums& span) const {
    Sums block;
    const auto clear = [&](Sums& sums) { std::fill_n(sums[0], terms.count * kUnitsAtOnce, 0.0); };
    clear(span);
    clear(block);
    while (k < end) {
      for (const std::int64_t last = std::min(k + kSumBlock, end); k < last; ++k) {
        fetch(terms, std::min(k + kPlacesAhead, count_ - 1), first, units);
        add_place(terms, k, first, units, block);
      }
      for (std::int64_t n = 0; n < terms.count; ++n) {
        for (std::int64_t i = 0; i < units; ++i) span[n][i] += std::exchange(block[n][i], 0.0);
      }
    }
  }

  void add_place(const PlaceTerms<T>& terms, std::int64_t k, std::int64_t first, std::int64_t units,
                 Sums& block) const {
    double(*sum)[kUnitsAtOnce] = block;
    for (const PlaceTerm<T>& term : terms) {
      const T* const gradient = space_.rows_a[k] + term.gradient + first;
      if (term.factors) {
        kernels_.add_product_wide(gradient, term.factors[k] + term.factor + first, *sum++, units);
      } else {
        kernels_.add_wide(gradient, *sum++, units);
      }
    }
  }

  // Rows lie too far apart for the hardware prefetcher.
  void fetch(const PlaceTerms<T>& terms, std::int64_t k, std::int64_t first,
             std::int64_t units) const {
    const auto lines = [&](const T* from) {
      constexpr std::int64_t kLine = 64 / sizeof(T);
      for (std::int64_t i = 0; i < units; i += kLine) __builtin_prefetch(from + first + i);
    };
    std::int64_t fetched = -1;  // terms of one gradient follow each other
    for (const PlaceTerm<T>& term : terms) {
      if (term.gradient != fetched) lines(space_.rows_a[k] + term.gradient);
      fetched = term.gradient;
      if (term.factors) lines(term.factors[k] + term.factor);
    }
  }

  const Kernels<T>& kernels_;
  const BackwardSpace<T>& space_;
  std::int64_t count_;
  bool accumulate_;
};

}  // namespace openrnn::cpu
