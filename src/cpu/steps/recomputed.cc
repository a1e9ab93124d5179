#include "cpu/steps/recomputed.h"

namespace openrnn::cpu {

template <class T>
void RecomputedPlaces<T>::carve(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
  this->carve_inputs(carver, s, args);
  const std::int64_t batch = args.batch, states = s.num_pseudo_layers() * batch;
  const std::int64_t steps = recompute_steps(args.recompute, args.max_time);
  borders.steps = steps;
  borders.chunks = std::max<std::int64_t>(divide_up(args.max_time, steps), 1);
  borders.layers = s.num_pseudo_layers();
  borders.batch = batch;
  borders.h_width = s.hidden_size();
  borders.c_width = s.has_cell() ? s.num_units : 0;
  borders.h = carver.take<T>(borders.chunks * states * borders.h_width);
  borders.c = carver.take<T>(borders.chunks * states * borders.c_width);
}

template <class T>
CpuRecomputed<T>::CpuRecomputed(std::shared_ptr<const CpuPacked<T>> weights,
                                const ForwardArgs& given)
    : KeptCall<T, RecomputedPlaces<T>>(std::move(weights), given) {
  fill_borders(given);
  ForwardArgs& kept = this->args;
  kept.x = kept.h0 = kept.c0 = nullptr;
  kept.y = kept.hn = kept.cn = nullptr;
  kept.layer_outputs = kept.layer_cells = nullptr;
}

// A row enters the first chunk of its direction with its initial state.
template <class T>
void CpuRecomputed<T>::fill_borders(const ForwardArgs& given) {
  const RnnSpec& spec = this->packed->spec();
  const auto fill = [&](const void* user, std::int64_t width, const auto& of) {
    const auto rows = state_rows<T>(user, spec, given, width);
    for (std::int64_t chunk = 0; chunk < this->borders.chunks; ++chunk) {
      const Grid<T> to = of(chunk);
      for (std::int64_t p = 0; to.base && p < spec.num_pseudo_layers(); ++p) {
        for (std::int64_t b = 0; b < given.batch; ++b) {
          if (user) {
            rows.load(this->packed->table(), p, b, width, to.at(p, b));
          } else {
            std::fill_n(to.at(p, b), width, T{0});
          }
        }
      }
    }
  };
  fill(given.h0, spec.hidden_size(), [&](std::int64_t chunk) { return this->borders.h_of(chunk); });
  fill(given.c0, spec.num_units, [&](std::int64_t chunk) { return this->borders.c_of(chunk); });
}

template struct RecomputedPlaces<float>;
template struct RecomputedPlaces<double>;
template struct CpuRecomputed<float>;
template struct CpuRecomputed<double>;

}  // namespace openrnn::cpu
