#include "cpu/steps/saved.h"

namespace openrnn::cpu {

template <class T>
void SavedPlaces<T>::carve(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
  this->carve_inputs(carver, s, args);
  carve_layers(carver, s, args);
}

template <class T>
void SavedPlaces<T>::carve_layers(Carver& carver, const RnnSpec& s, const ForwardArgs& args) {
  const std::int64_t batch = args.batch, places = args.max_time * batch;
  const std::int64_t out = s.output_size(), units = s.num_units;
  const std::int64_t gates = saved_gates(s) * units;
  const bool drops = args.training && s.training.dropout > 0.0;
  const bool drops_state = args.training && s.training.drops_state();
  const auto grid = [&](std::int64_t count, std::int64_t width) {
    return Grid<T>{carver.take<T>(count * width), batch * width, width};
  };
  layers.resize(static_cast<std::size_t>(s.num_layers));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    LayerStore<T>& layer = layers[l];
    layer.out = grid(places, out);
    layer.operand_steps = std::max<std::int64_t>(args.max_time, 1);
    layer.input = drops && l + 1 < layers.size() ? grid(places, out) : layer.out;
    for (std::size_t d = 0; d < static_cast<std::size_t>(s.num_dirs()); ++d) {
      layer.gates[d] = grid(places, gates);
      if (s.has_cell()) layer.c[d] = grid(places, units);
      if (s.projecting()) layer.h_tilde[d] = grid(places, units);
      if (s.proj_clip) layer.projected[d] = grid(places, s.hidden_size());
      if (s.zoneout_cell > 0.0) layer.c_now[d] = grid(places, units);
      if (drops_state) layer.operand[d] = grid(places, s.hidden_size());
      if (s.normalizes()) layer.norms[d] = grid(places, norm_row(s).size);
    }
  }
}

template struct SavedPlaces<float>;
template struct SavedPlaces<double>;

}  // namespace openrnn::cpu
