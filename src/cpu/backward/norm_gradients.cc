#include "cpu/backward/place_sums.h"

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

// `hats`: the normalized values of each place.
template <class T>
PlaceTerms<T> terms_of(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction,
                       const T* const* hats) {
  const CpuPacked<T>& packed = run.shared.packed;
  const RnnSpec& spec = packed.spec();
  const std::int64_t units = spec.num_units;
  const NormRow place = norm_row(spec);
  PlaceTerms<T> terms;
  const auto to = [&](ParamRole role, std::int64_t gate) {
    return run.dparams + packed.layout().bias(layer, direction, role, gate).offset;
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
void norm_gradients(const BackwardRun<T>& run, std::int64_t layer, std::int64_t direction,
                    int thread) noexcept {
  const StepContext<T>& shared = run.shared;
  const Share own = PlaceSums<T>::share(shared, thread);
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
  PlaceSums<T>(run, space, count).over_share(terms_of(run, layer, direction, space.rows_b), own);
}

template void norm_gradients<float>(const BackwardRun<float>&, std::int64_t, std::int64_t,
                                    int) noexcept;
template void norm_gradients<double>(const BackwardRun<double>&, std::int64_t, std::int64_t,
                                     int) noexcept;

}  // namespace openrnn::cpu
