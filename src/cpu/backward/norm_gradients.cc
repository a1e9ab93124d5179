#include <algorithm>
#include <utility>

#include "cpu/backward/places.h"

namespace openrnn::cpu {
namespace {

constexpr std::int64_t kUnitsAtOnce = 64;
// LSTM: four biases, four gains of each side, gain and bias of the cell.
constexpr std::int64_t kMostTerms = 14;

/// What a parameter's gradient sums over all places: a gradient of a sum, times a normalized value
/// or alone. Places are columns of the rows of both.
template <class T>
struct Term {
  std::int64_t gradient;
  std::int64_t hat;  // -1: alone
  T *to, *second;    // second: null, or the other bias that joins the same sums
};

template <class T>
struct Terms {
  std::array<Term<T>, kMostTerms> at;
  std::int64_t count = 0;

  void add(const Term<T>& term) { at[static_cast<std::size_t>(count++)] = term; }
};

// The gradients of gate k's sums, of the input's side and of the recurrent one: lstm i f g o, gru
// n, r, z, n r.
struct Sides {
  std::int64_t input, recurrent;
};
Sides sides_of(const RnnSpec& spec, std::int64_t gate) {
  if (spec.is_lstm()) return {gate, gate};
  constexpr Sides kGru[] = {{1, 1}, {2, 2}, {0, 3}};
  return kGru[gate];
}

template <class T>
Terms<T> terms_of(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction) {
  const CpuPacked<T>& packed = run.shared.packed;
  const RnnSpec& spec = packed.spec();
  const std::int64_t units = spec.num_units;
  const NormRow place = norm_row(spec);
  Terms<T> terms;
  const auto to = [&](ParamRole role, std::int64_t gate) {
    return run.dparams + packed.layout().bias(layer, direction, role, gate).offset;
  };
  for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
    const Sides at = sides_of(spec, gate);
    const std::int64_t input = at.input * units, recurrent = at.recurrent * units;
    T* const second = spec.biases_per_gate() > 1 ? to(ParamRole::kRecurrentBias, gate) : nullptr;
    const bool apart = at.input != at.recurrent;
    if (spec.biases_per_gate() > 0) {
      terms.add({input, -1, to(ParamRole::kInputBias, gate), apart ? nullptr : second});
    }
    if (second && apart) terms.add({recurrent, -1, second, nullptr});
    const ParamRole gain = spec.normalizes_products() ? ParamRole::kInputGain : ParamRole::kSumGain;
    terms.add({input, place.input + gate * units, to(gain, gate), nullptr});
    if (!spec.normalizes_products()) continue;
    terms.add(
        {recurrent, place.recurrent + gate * units, to(ParamRole::kRecurrentGain, gate), nullptr});
  }
  if (spec.normalizes_cell()) {
    terms.add({4 * units, place.cell, to(ParamRole::kCellGain, 0), nullptr});
    terms.add({4 * units, -1, to(ParamRole::kCellBias, 0), nullptr});
  }
  return terms;
}

using Sums = double[kMostTerms][kUnitsAtOnce];

// The sums over all places, in the order of sum_order.h for columns.
template <class T>
struct NormSums {
  const Kernels<T>& kernels;
  const BackwardSpace<T>& space;  // rows_a: gradients of sums, rows_b: normalized values
  const Terms<T>& terms;
  std::int64_t count;
  bool accumulate;

  /// Of `units` units from `first` on.
  void over(std::int64_t first, std::int64_t units) const {
    for (std::int64_t n = 0; n < terms.count && !accumulate; ++n) {
      std::fill_n(to(n) + first, units, T{0});
    }
    const std::int64_t* group = space.groups;
    for (std::int64_t k = 0, left = 0; k < count;) {
      if (left == 0) left = *group++;
      const std::int64_t end = k + std::min(left, kSumSpan);
      left -= end - k;
      Sums span = {};
      add_span(k, end, first, units, span);
      for (std::int64_t n = 0; n < terms.count; ++n) {
        for (std::int64_t i = 0; i < units; ++i) to(n)[first + i] += static_cast<T>(span[n][i]);
      }
      k = end;
    }
    for (std::int64_t n = 0; n < terms.count; ++n) {
      T* const second = terms.at[static_cast<std::size_t>(n)].second;
      if (second) std::copy_n(to(n) + first, units, second + first);
    }
  }

 private:
  T* to(std::int64_t n) const { return terms.at[static_cast<std::size_t>(n)].to; }
  // Rows lie too far apart for the hardware prefetcher.
  void fetch(std::int64_t k, std::int64_t first, std::int64_t units) const {
    const auto lines = [&](const T* from) {
      constexpr std::int64_t kLine = 64 / sizeof(T);
      for (std::int64_t i = 0; i < units; i += kLine) __builtin_prefetch(from + first + i);
    };
    for (std::int64_t n = 0; n < terms.count; ++n) {
      const Term<T>& term = terms.at[static_cast<std::size_t>(n)];
      lines(space.rows_a[k] + term.gradient);
      if (term.hat >= 0) lines(space.rows_b[k] + term.hat);
    }
  }
  void add_span(std::int64_t k, std::int64_t end, std::int64_t first, std::int64_t units,
                Sums& span) const {
    Sums block = {};
    while (k < end) {
      for (const std::int64_t last = std::min(k + kSumBlock, end); k < last; ++k) {
        fetch(std::min(k + kRowsAhead, count - 1), first, units);
        for (std::int64_t n = 0; n < terms.count; ++n) {
          const Term<T>& term = terms.at[static_cast<std::size_t>(n)];
          const T* const gradient = space.rows_a[k] + term.gradient + first;
          if (term.hat < 0) {
            kernels.add_wide(gradient, block[n], units);
          } else {
            kernels.add_product_wide(gradient, space.rows_b[k] + term.hat + first, block[n], units);
          }
        }
      }
      for (std::int64_t n = 0; n < terms.count; ++n) {
        for (std::int64_t i = 0; i < units; ++i) span[n][i] += std::exchange(block[n][i], 0.0);
      }
    }
  }
};

}  // namespace

template <class T>
void norm_gradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction,
                    int thread) noexcept {
  const StepContext<T>& shared = run.shared;
  const Share own(shared.spec().num_units, kUnitsAtOnce, thread, shared.plan.threads());
  if (own.first >= own.last) return;
  const BackwardSpace<T>& space = run.scratch.threads[thread];
  const auto d = static_cast<std::size_t>(direction);
  const Grid<T>& dsums = run.scratch.dsums[d];
  const Grid<T>& norms = run.saved.layers[static_cast<std::size_t>(layer)].norms[d];
  const std::int64_t count =
      each_place(shared, space.groups, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        space.rows_a[k] = dsums.at(t, b);
        space.rows_b[k] = norms.at(t, b);
      });
  const Terms<T> terms = terms_of(run, layer, direction);
  const NormSums<T> sums{shared.packed.kernels(), space, terms, count, run.accumulate};
  for (std::int64_t u = own.first; u < own.last; u += kUnitsAtOnce) {
    sums.over(u, std::min(kUnitsAtOnce, own.last - u));
  }
}

template void norm_gradients<float>(const BackwardRun<float>&, std::int64_t, std::int64_t,
                                    int) noexcept;
template void norm_gradients<double>(const BackwardRun<double>&, std::int64_t, std::int64_t,
                                     int) noexcept;

}  // namespace openrnn::cpu
