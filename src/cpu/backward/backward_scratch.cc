#include "cpu/backward/backward_scratch.h"

#include "cpu/pack/transposed.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

// What transposed weights of direction d need beside the gradient's own memory.
template <class T>
std::int64_t transposed_beside(const BackwardNeeds<T>& needs, std::int64_t d, T* dparams) {
  const CpuPacked<T>& packed = needs.packed;
  std::int64_t most = 0;
  for (std::int64_t l = 0; packed.transposes() && l < packed.spec().num_layers; ++l) {
    if (transposed_in_gradient(packed, l, d, needs.call.batch, dparams)) continue;
    most = std::max(most, transposed_size(packed.layer(l, d)));
  }
  return most;
}

// Columns of the products of weight gradients that are packed at once: those of both sides, so that
// the gate gradients are packed once for both, where that is seen and takes little memory.
template <class T>
std::int64_t columns_at_once(const CpuPacked<T>& packed) {
  const RnnSpec& s = packed.spec();
  const std::int64_t few = packed.arithmetic() == kExact ? kColumnsOfBoth : kColumnsOfBothNarrow;
  const std::int64_t widest = std::max({s.input_size, s.output_size(), s.num_units});
  return widest <= few ? 2 * divide_up(widest, kMostPanelColumns) * kMostPanelColumns : widest;
}

// What the transposed weights of a layer need that is shifted in time: its steps and its products
// with the input alternate.
template <class T>
std::int64_t both_transposed(const CpuPacked<T>& packed, std::int64_t layer) {
  return packed.transposes() ? transposed_size(packed.layer(layer, 0), true) : 0;
}

// Of a layer that is shifted in time.
template <class T>
LayerScratch<T> carve_shifted(Carver& carver, const CpuPacked<T>& packed, const ForwardArgs& call,
                              std::int64_t layer) {
  LayerScratch<T> scratch{};
  scratch.carve_direction(carver, packed, call, 0);
  scratch.transposed[0] = carver.take<T>(both_transposed(packed, layer));
  return scratch;
}

// The pointers to rows of a step.
template <class T>
void take_rows(Carver& carver, std::int64_t batch, BackwardSpace<T>& space) {
  for (const T*** list : {&space.a, &space.dy, &space.gates, &space.c, &space.c_prev, &space.h_prev,
                          &space.masks, &space.norms}) {
    *list = carver.take<const T*>(batch);
  }
  for (T*** list : {&space.carry, &space.dc, &space.da, &space.sums_of, &space.dm}) {
    *list = carver.take<T*>(batch);
  }
}

}  // namespace

template <class T>
BackwardScratch<T> BackwardScratch<T>::carve(Carver& carver, const CpuSaved<T>& saved,
                                             const Plan& plan, const BackwardArgs& args) {
  const RnnSpec& s = saved.packed->spec();
  const bool narrow = is_16_bit_float(s.dtype);
  return carve(carver,
               {.packed = *saved.packed,
                .call = saved.args,
                .threads = plan.threads(),
                .between = s.num_layers > 1 && !dx_serves(saved, args),
                .wide_params = narrow && args.dparams,
                .lent = narrow ? nullptr : static_cast<T*>(args.dparams),
                .row_norms = args.row_norms != nullptr,
                .wide_rows = narrow && args.row_dparams ? args.last_row - args.first_row : 0,
                .shifts = plan.layer_groups > 1});
}

template <class T>
void LayerScratch<T>::carve_steps(Carver& carver, const CpuPacked<T>& packed, std::int64_t time,
                                  std::int64_t batch, std::size_t d) {
  const RnnSpec& s = packed.spec();
  const auto grid = [&](std::int64_t width) {
    return Grid<T>{carver.take<T>(time * batch * width), batch * width, width};
  };
  da[d] = grid(packed.gradient_gates() * s.num_units);
  if (s.projecting()) dh_proj[d] = grid(s.hidden_size());
  if (packed.normalizes()) dsums[d] = grid(packed.sum_gradients() * s.num_units);
}

template <class T>
void LayerScratch<T>::carve_direction(Carver& carver, const CpuPacked<T>& packed,
                                      const ForwardArgs& call, std::size_t d) {
  const RnnSpec& s = packed.spec();
  const auto grid = [&](bool wanted, std::int64_t width) {
    return wanted ? Grid<T>{carver.take<T>(call.batch * width), 0, width} : Grid<T>{};
  };
  carve_steps(carver, packed, call.max_time, call.batch, d);
  dc[d] = grid(s.has_cell(), s.num_units);
  carry[d] = grid(true, s.hidden_size());
  const bool drops_state = s.training.drops_state();
  state_mask[d] = grid(drops_state, s.hidden_size());
  candidate_mask[d] = grid(s.training.drops_candidate(), s.num_units);
  dh_split[d] = grid(drops_state || s.zoneout > 0.0, s.hidden_size());
  dc_kept[d] = grid(s.zoneout_cell > 0.0, s.num_units);
  dm[d] = grid(packed.normalizes() && s.projecting(), s.num_units);
}

template <class T>
std::size_t shifted_bytes(const CpuPacked<T>& packed, const ForwardArgs& call) {
  Carver measure;
  for (std::int64_t l = 0; l < packed.spec().num_layers; ++l)
    carve_shifted(measure, packed, call, l);
  return measure.used();
}

// The last layer has what layers otherwise take turns with.
template <class T>
void BackwardScratch<T>::carve_layers(Carver& carver, const CpuPacked<T>& packed,
                                      const ForwardArgs& call) {
  const std::int64_t last = packed.spec().num_layers - 1;
  layers = carver.take<LayerScratch<T>>(last + 1);
  for (std::int64_t l = 0; l <= last; ++l) {
    const LayerScratch<T> own = l < last ? carve_shifted(carver, packed, call, l) : *this;
    // Null while the first pass measures.
    if (layers) layers[l] = own;
  }
}

template <class T>
BackwardScratch<T> BackwardScratch<T>::carve(Carver& carver, const BackwardNeeds<T>& needs) {
  const CpuPacked<T>& packed = needs.packed;
  const RnnSpec& s = packed.spec();
  const std::int64_t batch = needs.call.batch, places = batch * needs.call.max_time;
  const bool narrow = is_16_bit_float(s.dtype);
  BackwardScratch scratch{};
  scratch.order = carver.take<std::int32_t>(batch);
  for (std::size_t d = 0; d < static_cast<std::size_t>(s.num_dirs()); ++d) {
    scratch.carve_direction(carver, packed, needs.call, d);
  }
  if (needs.between) {
    const std::int64_t out = s.output_size();
    scratch.dx = {carver.take<T>(places * out), batch * out, out};
  }
  scratch.dy_wide = narrow ? carver.take<T>(places * s.output_size()) : nullptr;
  scratch.dx_wide = narrow ? carver.take<T>(places * s.input_size) : nullptr;
  scratch.params_wide = needs.wide_params ? carver.take<T>(packed.layout().size()) : nullptr;
  scratch.rows_wide =
      needs.wide_rows > 0 ? carver.take<T>(needs.wide_rows * packed.layout().size()) : nullptr;
  for (std::int64_t d = 0; d < s.num_dirs(); ++d) {
    T* const gradient = scratch.params_wide ? scratch.params_wide : needs.lent;
    const std::int64_t beside = transposed_beside(needs, d, gradient);
    const std::int64_t both = needs.shifts ? both_transposed(packed, s.num_layers - 1) : 0;
    scratch.transposed[static_cast<std::size_t>(d)] = carver.take<T>(std::max(beside, both));
  }
  if (needs.shifts) scratch.carve_layers(carver, packed, needs.call);
  const std::int64_t outputs = std::max<std::int64_t>(
      {packed.gradient_gates() * s.num_units, s.hidden_size(), kStagedRows, batch});
  const std::int64_t all = std::max(places, kStagedRows);
  const std::int64_t groups = divide_up(needs.call.max_time, kGradientSteps);
  scratch.threads = carver.take<BackwardSpace<T>>(needs.threads);
  for (int i = 0; i < needs.threads; ++i) {
    BackwardSpace<T> space{};
    take_rows(carver, batch, space);
    space.rows_a = carver.take<const T*>(all);
    space.rows_b = carver.take<const T*>(all);
    space.rows_h = carver.take<const T*>(all);
    space.groups = carver.take<std::int64_t>(groups);
    space.rows_c = carver.take<T*>(outputs);
    space.rows_r = carver.take<T*>(outputs);
    space.mask = carver.take<T>(std::max(s.output_size(), s.num_units));
    space.sums = carver.take<T>(outputs);
    space.row_params = needs.row_norms ? carver.take<T>(packed.layout().size()) : nullptr;
    space.product = ProductScratch<T>::carve(carver, columns_at_once(packed), places, groups);
    space.staging = packed.stage(carver, std::max(batch, kStagedRows));
    // Null while the first pass measures.
    if (scratch.threads) scratch.threads[i] = space;
  }
  return scratch;
}

template struct LayerScratch<float>;
template struct LayerScratch<double>;
template std::size_t shifted_bytes<float>(const CpuPacked<float>&, const ForwardArgs&);
template std::size_t shifted_bytes<double>(const CpuPacked<double>&, const ForwardArgs&);
template struct BackwardScratch<float>;
template struct BackwardScratch<double>;

}  // namespace openrnn::cpu
