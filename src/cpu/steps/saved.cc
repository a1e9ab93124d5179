#include "cpu/steps/saved.h"

namespace openrnn::cpu {

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

template struct SavedPlaces<float>;
template struct SavedPlaces<double>;

}  // namespace openrnn::cpu
