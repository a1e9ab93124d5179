#include "cpu/pack/vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace openrnn::cpu {
namespace {

template <class T>
CellFunction<T> function_of(const CellActivation& f) {
  CellFunction<T> function{static_cast<int>(f.kind), static_cast<T>(f.alpha),
                           static_cast<T>(f.beta)};
  if (f.kind != CellActivationKind::kThresholdedRelu) return function;
  // Kernels take subnormal numbers for 0, so the one above 0 is the smallest normal one.
  constexpr T kSmallest = std::numeric_limits<T>::min();
  const T above = std::nextafter(function.alpha, std::numeric_limits<T>::infinity());
  function.beta = above >= 0 && above < kSmallest ? kSmallest : above;
  return function;
}

// Those of the units of a vector side by side, zero beyond the units.
template <class T>
T* pack_gains(const Source<T>& source, const RnnSpec& spec, ParamRole role, std::int64_t gates,
              std::int64_t lanes, T* to) {
  for (std::int64_t unit = 0; unit < spec.num_units; unit += lanes) {
    for (std::int64_t gate = 0; gate < gates; ++gate, to += lanes) {
      const T* const from = source.bias(role, gate) + unit;
      const std::int64_t count = std::min(lanes, spec.num_units - unit);
      std::fill(std::copy_n(from, count, to), to + lanes, T{0});
    }
  }
  return to;
}

template <class T>
NormOptions<T> pack_norm(const PackedLayer<T>& packed, const Source<T>& source,
                         const RnnSpec& spec) {
  NormOptions<T> norm{.groups = 1,
                      .begins = {0, spec.num_gates()},
                      .products = spec.normalizes_products(),
                      .normalizes_cell = spec.normalizes_cell(),
                      .carries_cell = spec.layer_norm_cell == LayerNormCell::kCarried,
                      .epsilon = static_cast<T>(spec.layer_norm_epsilon)};
  if (spec.layer_norm == LayerNorm::kSplitProducts) {
    norm.groups = 2;
    norm.begins[1] = 2;
    norm.begins[2] = 3;
  } else if (spec.layer_norm == LayerNorm::kGates) {
    norm.groups = spec.num_gates();
    for (std::int64_t n = 1; n <= norm.groups; ++n) norm.begins[n] = n;
  }
  const std::int64_t lanes = packed.w.lanes, gates = spec.num_gates();
  T* to = packed.gains;
  norm.gain[0] = to;
  to = pack_gains(source, spec, norm.products ? ParamRole::kInputGain : ParamRole::kSumGain, gates,
                  lanes, to);
  if (norm.products) {
    norm.gain[1] = to;
    to = pack_gains(source, spec, ParamRole::kRecurrentGain, gates, lanes, to);
  }
  if (norm.normalizes_cell) {
    norm.cell_gain = to;
    norm.cell_bias = to = pack_gains(source, spec, ParamRole::kCellGain, 1, lanes, to);
    pack_gains(source, spec, ParamRole::kCellBias, 1, lanes, to);
  }
  return norm;
}

}  // namespace

template <class T>
void pack_bias(const PackedLayer<T>& packed, const Source<T>& source, const RnnSpec& spec) {
  const std::int64_t gates = spec.num_gates(), lanes = packed.w.lanes;
  const bool splits_n = spec.mode == RnnMode::kGru && spec.reset_after;
  const int biases = spec.biases_per_gate();
  for (std::int64_t v = 0; v < divide_up(packed.w.vectors, packed.w.width) * packed.w.width; ++v) {
    const std::int64_t gate = v % gates;
    const T* input = biases > 0 ? source.bias(ParamRole::kInputBias, gate) : nullptr;
    const T* recurrent = biases > 1 ? source.bias(ParamRole::kRecurrentBias, gate) : nullptr;
    const bool forgets = gates_of(spec.mode)[static_cast<std::size_t>(gate)] == Gate::kF;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t unit = v / gates * lanes + lane;
      const bool inside = unit < spec.num_units;
      const bool split = splits_n && gate == 2;
      const T from_input = inside && input ? input[unit] : T{0};
      const T from_state = inside && recurrent ? recurrent[unit] : T{0};
      T& sum = packed.bias[v * lanes + lane] = split ? from_input : from_input + from_state;
      if (inside && forgets) sum += static_cast<T>(spec.forget_bias);
      if (split) packed.hn_bias[unit] = from_state;
    }
  }
}

template <class T>
void pack_options(PackedLayer<T>& packed, const Source<T>& source, const RnnSpec& spec) {
  CellOptions<T>& options = packed.options;
  options = {.gate = function_of<T>(spec.gate_activation()),
             .candidate = function_of<T>(spec.candidate_activation()),
             .output = function_of<T>(spec.cell_activation()),
             .coupled = spec.coupled_gates,
             .clip = spec.gate_clip.has_value()};
  if (spec.gate_clip) {
    options.low = static_cast<T>((*spec.gate_clip)[0]);
    options.high = static_cast<T>((*spec.gate_clip)[1]);
  }
  if (spec.normalizes()) options.norm = pack_norm(packed, source, spec);
  if (!spec.use_peepholes) return;
  const std::int64_t padded = divide_up(spec.num_units, packed.w.lanes) * packed.w.lanes;
  T* to = packed.peephole;
  for (const std::int64_t gate : {0, 1, 3}) {
    const T* from = source.bias(ParamRole::kPeephole, gate);
    std::copy_n(from, spec.num_units, to);
    std::fill(to + spec.num_units, to + padded, T{0});
    options.peephole[gate] = to;
    to += padded;
  }
}

template void pack_bias<float>(const PackedLayer<float>&, const Source<float>&, const RnnSpec&);
template void pack_bias<double>(const PackedLayer<double>&, const Source<double>&, const RnnSpec&);
template void pack_options<float>(PackedLayer<float>&, const Source<float>&, const RnnSpec&);
template void pack_options<double>(PackedLayer<double>&, const Source<double>&, const RnnSpec&);

}  // namespace openrnn::cpu
