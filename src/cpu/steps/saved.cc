#include "cpu/steps/saved.h"

#include <atomic>

#include "cpu/plan/plan.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {
std::atomic<bool> always_streams{false};
}  // namespace

bool assume_streams(bool always) noexcept { return always_streams.exchange(always); }

template <class T>
bool streams_gates(const CpuPacked<T>& packed, const ForwardArgs& args, std::int64_t layers,
                   int threads, const Grid<T>& gates) noexcept {
  constexpr std::int64_t kLine = 64, kBytes = sizeof(T);
  const std::int64_t units = packed.spec().num_units * kBytes;
  const bool whole_lines = packed.kernels().lanes * kBytes == kLine && units % kLine == 0 &&
                           reinterpret_cast<std::uintptr_t>(gates.base) % kLine == 0;
  // Gates between the parts of one step take turns in one place.
  if (!packed.table().tiles || packed.has_options() || gates.step == 0 || !whole_lines)
    return false;
  const std::int64_t all = args.max_time * args.batch * layers * packed.saved_gates() * units;
  const std::int64_t kept = threads * kStreamedL2s * static_cast<std::int64_t>(l2_bytes());
  return all > kept || always_streams.load(std::memory_order_relaxed);
}

template <class T>
void SavedPlaces<T>::carve(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
  this->carve_inputs(carver, s, args);
  carve_layers(carver, s, args);
}

template <class T>
LayerStore<T> SavedPlaces<T>::carve_layer(Carver& carver, const RnnSpec& s, const ForwardArgs& args,
                                          std::int64_t first) {
  const std::int64_t batch = args.batch, places = args.max_time * batch;
  const std::int64_t units = s.num_units, gates = saved_gates(s) * units;
  const bool drops_state = args.training && s.training.drops_state();
  const auto grid = [&](std::int64_t width) {
    return Grid<T>{carver.take<T>(places * width), batch * width, width};
  };
  LayerStore<T> layer;
  layer.out = layer.input = grid(s.output_size());
  layer.operand_steps = std::max<std::int64_t>(args.max_time, 1);
  for (auto d = static_cast<std::size_t>(first); d < static_cast<std::size_t>(s.num_dirs()); ++d) {
    layer.gates[d] = grid(gates);
    if (s.has_cell()) layer.c[d] = grid(units);
    if (s.projecting()) layer.h_tilde[d] = grid(units);
    if (s.proj_clip) layer.projected[d] = grid(s.hidden_size());
    if (s.zoneout_cell > 0.0) layer.c_now[d] = grid(units);
    if (drops_state) layer.operand[d] = grid(s.hidden_size());
    if (s.normalizes()) layer.norms[d] = grid(norm_row(s).size);
  }
  return layer;
}

template <class T>
void SavedPlaces<T>::carve_layers(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
  const std::int64_t width = s.output_size(), batch = args.batch;
  const bool drops = args.training && s.training.dropout > 0.0;
  layers.resize(static_cast<std::size_t>(s.num_layers));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l] = carve_layer(carver, s, args);
    if (drops && l + 1 < layers.size()) {
      layers[l].input = {carver.take<T>(args.max_time * batch * width), batch * width, width};
    }
  }
}

template bool streams_gates(const CpuPacked<float>&, const ForwardArgs&, std::int64_t, int,
                            const Grid<float>&) noexcept;
template bool streams_gates(const CpuPacked<double>&, const ForwardArgs&, std::int64_t, int,
                            const Grid<double>&) noexcept;
template struct SavedPlaces<float>;
template struct SavedPlaces<double>;

}  // namespace openrnn::cpu
