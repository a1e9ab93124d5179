#include "cpu/backward/places.h"

namespace openrnn::cpu {
namespace {

// The gradients of gate k's sums, of the input's side and of the recurrent one: lstm i f g o, gru
// n, r, z, n r.
struct Sides {
  std::int64_t input, recurrent;
};
Sides sides_of(const RnnSpec& spec, std::int64_t gate) {
  if (spec.is_lstm()) return {gate, gate};
  return gate == 2 ? Sides{0, 3} : Sides{gate + 1, gate + 1};
}

// rows_b: the normalized values of each place.
template <class T>
PlaceTerms<T> terms_of(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                       std::int64_t direction) {
  const CpuPacked<T>& packed = run.shared.packed;
  const RnnSpec& spec = packed.spec();
  const std::int64_t units = spec.num_units;
  const NormRow place = norm_row(spec);
  const T* const* const hats = part.space.rows_b;
  PlaceTerms<T> terms;
  const auto to = [&](ParamRole role, std::int64_t gate) {
    return part.dparams + packed.layout().bias(layer, direction, role, gate).offset;
  };
  const auto add_bias = [&](std::int64_t gradient, T* bias, T* second = nullptr) {
    terms.add({gradient, nullptr, 0, bias, second});
  };
  for (std::int64_t gate = 0; gate < spec.num_gates(); ++gate) {
    const Sides at = sides_of(spec, gate);
    const std::int64_t input = at.input * units, recurrent = at.recurrent * units;
    T* const second = spec.biases_per_gate() > 1 ? to(ParamRole::kRecurrentBias, gate) : nullptr;
    const bool apart = at.input != at.recurrent;
    if (spec.biases_per_gate() > 0) {
      add_bias(input, to(ParamRole::kInputBias, gate), apart ? nullptr : second);
    }
    if (second && apart) add_bias(recurrent, second);
    const ParamRole gain = spec.normalizes_products() ? ParamRole::kInputGain : ParamRole::kSumGain;
    terms.add({input, hats, place.input + gate * units, to(gain, gate)});
    if (!spec.normalizes_products()) continue;
    terms.add(
        {recurrent, hats, place.recurrent + gate * units, to(ParamRole::kRecurrentGain, gate)});
  }
  if (spec.normalizes_cell()) {
    terms.add({4 * units, hats, place.cell, to(ParamRole::kCellGain, 0)});
    add_bias(4 * units, to(ParamRole::kCellBias, 0));
  }
  return terms;
}

}  // namespace

template <class T>
void norm_gradients(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                    std::int64_t direction) noexcept {
  const StepContext<T>& shared = run.shared;
  const Share own = PlaceSums<T>::share(shared, part);
  if (own.first >= own.last) return;
  const BackwardSpace<T>& space = part.space;
  const auto d = static_cast<std::size_t>(direction);
  const Grid<T>& dsums = run.scratch_of(layer).dsums[d];
  const Grid<T>& norms = run.saved.layers[static_cast<std::size_t>(layer)].norms[d];
  const std::int64_t count =
      each_place(shared, part, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        space.rows_a[k] = dsums.at(t, b);
        space.rows_b[k] = norms.at(t, b);
      });
  PlaceSums<T>(run, part, count).over_share(terms_of(run, part, layer, direction), own);
}

template void norm_gradients<float>(const BackwardRun<float>&, const GradientPart<float>&,
                                    std::int64_t, std::int64_t) noexcept;
template void norm_gradients<double>(const BackwardRun<double>&, const GradientPart<double>&,
                                     std::int64_t, std::int64_t) noexcept;

template <class T>
void peephole_gradients(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                        std::int64_t direction) noexcept {
  const StepContext<T>& shared = run.shared;
  const Share own = PlaceSums<T>::share(shared, part);
  if (own.first >= own.last) return;
  const BackwardSpace<T>& space = part.space;
  const auto d = static_cast<std::size_t>(direction);
  const LayerStore<T>& store = run.saved.layers[static_cast<std::size_t>(layer)];
  const Grid<T>& cells = store.c[d];
  const Grid<T>& now = store.c_now[d].base ? store.c_now[d] : cells;
  // A peephole joins after layer normalization.
  const Grid<T>& da =
      shared.spec().normalizes() ? run.scratch_of(layer).dsums[d] : run.scratch_of(layer).da[d];
  point_before(shared, part, {layer, direction, cells, 0, run.saved.c0}, space.rows_b);
  const std::int64_t count =
      each_place(shared, part, [&](std::int64_t t, std::int64_t b, std::int64_t k) {
        space.rows_a[k] = da.at(t, b);
        space.rows_h[k] = now.at(t, b);
      });
  PlaceTerms<T> terms;
  const auto add = [&](std::int64_t gate, const T* const* cells_of) {
    const ParamRegion& region =
        shared.packed.layout().bias(layer, direction, ParamRole::kPeephole, gate);
    terms.add({gate * shared.spec().num_units, cells_of, 0, part.dparams + region.offset});
  };
  add(0, space.rows_b);
  add(1, space.rows_b);
  // o sees the cell after the step.
  add(3, space.rows_h);
  PlaceSums<T>(run, part, count).over_share(terms, own);
}

template void peephole_gradients<float>(const BackwardRun<float>&, const GradientPart<float>&,
                                        std::int64_t, std::int64_t) noexcept;
template void peephole_gradients<double>(const BackwardRun<double>&, const GradientPart<double>&,
                                         std::int64_t, std::int64_t) noexcept;

}  // namespace openrnn::cpu
