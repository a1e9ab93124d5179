#include "cpu/forward/forward_rows.h"

namespace openrnn::cpu {
template <class T>
void ForwardRows<T>::finish_states(std::int64_t layer) noexcept {
  const RnnSpec& spec = shared_.spec();
  const ForwardArgs& args = shared_.args;
  const LayerStore<T>& store = run_.scratch.layers[layer];
  const KernelTable& table = shared_.packed.table();
  const std::int64_t width = spec.hidden_size();
  const auto hn = state_rows<T>(args.hn, spec, args, width);
  const auto cn = state_rows<T>(args.cn, spec, args, spec.num_units);
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i), length = shared_.rows.length(b);
    for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
      const std::int64_t p = layer * spec.num_dirs() + d, t = d == 0 ? length - 1 : 0;
      const T* h = length > 0     ? store.out.at(t, b) + d * width
                   : run_.h0.base ? run_.h0.at(p, b)
                                  : nullptr;
      if (args.hn) hn.store(table, p, b, width, h);
      if (!args.cn || !spec.has_cell()) continue;
      const T* c = length > 0     ? store.c[static_cast<std::size_t>(d)].at(t, b)
                   : run_.c0.base ? run_.c0.at(p, b)
                                  : nullptr;
      cn.store(table, p, b, spec.num_units, c);
    }
  }
}

// Outputs of this layer that the caller asked for, and the padding of its cells.
template <class T>
void ForwardRows<T>::finish_kept(std::int64_t layer) noexcept {
  const RnnSpec& spec = shared_.spec();
  const ForwardArgs& args = shared_.args;
  const KernelTable& table = shared_.packed.table();
  void* const out = args.layer_outputs ? args.layer_outputs[layer] : nullptr;
  void* const cells = args.layer_cells ? args.layer_cells[layer] : nullptr;
  const std::int64_t out_width = spec.output_size(), cell_width = spec.num_dirs() * spec.num_units;
  const auto out_rows = sequence_rows<T>(out, spec, args, out_width);
  const auto cell_rows = sequence_rows<T>(cells, spec, args, cell_width);
  const Grid<T>& from = run_.scratch.layers[layer].out;
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i), length = shared_.rows.length(b);
    for (std::int64_t t = 0; out && t < args.max_time; ++t) {
      out_rows.store(table, t, b, out_width, t < length ? from.at(t, b) : nullptr);
    }
    for (std::int64_t t = length; cells && t < args.max_time; ++t) {
      cell_rows.store(table, t, b, cell_width, nullptr);
    }
  }
}

template <class T>
void place_layers(ForwardRun<T>& run) {
  const RnnSpec& spec = run.shared.spec();
  const ForwardArgs& args = run.shared.args;
  const Scratch<T>& scratch = run.scratch;
  const std::int64_t out = spec.output_size(), units = spec.num_units;
  const auto y = sequence_rows<T>(args.y, spec, args, out);
  for (std::int64_t l = 0; l < spec.num_layers; ++l) {
    LayerStore<T>& store = scratch.layers[l];
    store = {};
    if (l + 1 < spec.num_layers) {
      store.out = {scratch.below + l % scratch.outs * scratch.out_size, args.batch * out, out};
    } else if (y.storage != kStorageWide) {
      store.out = {scratch.last, args.batch * out, out};
    } else {
      store.out = {static_cast<T*>(args.y), y.step, y.row};
    }
    store.input = store.out;
    store.operand_steps = 2;
    for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      // Of its own for every layer: cn is read while the next one has begun.
      store.c[i] = {scratch.c + (l * spec.num_dirs() + d) * args.batch * units, 0, units};
      store.h_tilde[i] = {scratch.h_tilde + d * args.batch * units, 0, units};
      store.c_now[i] = {scratch.c_now + d * args.batch * units, 0, units};
      const std::int64_t state = args.batch * spec.hidden_size();
      store.operand[i] = {scratch.operand + d * 2 * state, state, spec.hidden_size()};
      if (!run.shared.packed.hands_on_gates()) continue;
      const std::int64_t gates = run.shared.packed.saved_gates() * units;
      store.gates[i] = {scratch.gates + d * args.batch * gates, 0, gates};
    }
  }
}

template <class T>
void ForwardRows<T>::gather_inputs() noexcept {
  const RnnSpec& spec = shared_.spec();
  const ForwardArgs& args = shared_.args;
  const KernelTable& table = shared_.packed.table();
  const auto user_x = sequence_rows<T>(args.x, spec, args, spec.input_size);
  const auto user_h0 = state_rows<T>(args.h0, spec, args, spec.hidden_size());
  const auto user_c0 = state_rows<T>(args.c0, spec, args, spec.num_units);
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = 0; t < shared_.rows.length(b); ++t) {
      user_x.load(table, t, b, spec.input_size, run_.x.at(t, b));
    }
    for (std::int64_t p = 0; p < spec.num_pseudo_layers(); ++p) {
      if (run_.h0.base) user_h0.load(table, p, b, spec.hidden_size(), run_.h0.at(p, b));
      if (run_.c0.base) user_c0.load(table, p, b, spec.num_units, run_.c0.at(p, b));
    }
  }
}

// The units that this member's step computes: with layer normalization all, of its own rows.
template <class T>
Range ForwardRows<T>::own_units(const ForwardStep<T>& call) const {
  const CpuPacked<T>& packed = shared_.packed;
  const std::int64_t all = shared_.spec().num_units;
  if (packed.normalizes()) return {0, all};
  return units_of(call.w, packed.recurrent_gates(), packed.kernels().lanes, all);
}

template <class T>
void ForwardRows<T>::keep_cells(std::int64_t layer, std::int64_t direction, std::int64_t step,
                                const ForwardStep<T>& call) noexcept {
  const RnnSpec& spec = shared_.spec();
  const std::int64_t units = spec.num_units;
  const Range own = own_units(call);
  if (own.first >= own.last) return;
  const auto cells =
      sequence_rows<T>(shared_.args.layer_cells[layer], spec, shared_.args, spec.num_dirs() * units)
          .from(direction * units + own.first);
  for (std::int64_t i = first_row(); i < call.rows; i += row_stride()) {
    const std::int64_t b = shared_.row(me_, i);
    cells.store(shared_.packed.table(), shared_.time_of(direction, step, b), b, own.count(),
                me_.space.c[i] + own.first);
  }
}

template <class T>
void ForwardRows<T>::keep_border_cells(std::int64_t layer, std::int64_t direction,
                                       std::int64_t step, const ForwardStep<T>& call) noexcept {
  const Range own = own_units(call);
  if (own.first >= own.last) return;
  const std::int64_t p = layer * shared_.spec().num_dirs() + direction;
  for (std::int64_t i = first_row(); i < call.rows; i += row_stride()) {
    const std::int64_t b = shared_.row(me_, i);
    const std::int64_t chunk =
        run_.borders->entered_after(direction, shared_.time_of(direction, step, b));
    if (chunk < 0) continue;
    const T* const c = me_.space.c[i];
    std::copy(c + own.first, c + own.last, run_.borders->c_of(chunk).at(p, b) + own.first);
  }
}

template <class T>
void ForwardRows<T>::keep_border_outputs(std::int64_t layer) noexcept {
  const RnnSpec& spec = shared_.spec();
  const BorderStates<T>& borders = *run_.borders;
  const std::int64_t width = spec.hidden_size();
  const Grid<T>& out = run_.scratch.layers[layer].out;
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = borders.steps; t < shared_.rows.length(b); t += borders.steps) {
      for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
        // Step t is the first of a chunk: the one before it, too, is at the border.
        const std::int64_t at = d == 0 ? t - 1 : t;
        std::copy_n(out.at(at, b) + d * width, width,
                    borders.h_of(borders.entered_after(d, at)).at(layer * spec.num_dirs() + d, b));
      }
    }
  }
}

template <class T>
void ForwardRows<T>::finish_layer(std::int64_t layer) noexcept {
  finish_states(layer);
  finish_kept(layer);
  if (run_.borders) keep_border_outputs(layer);
}

template <class T>
void ForwardRows<T>::drop_outputs(std::int64_t layer, std::int64_t first,
                                  std::int64_t end) noexcept {
  const LayerStore<T>& store = run_.scratch.layers[layer];
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i);
    for (std::int64_t t = first; t < std::min(end, shared_.rows.length(b)); ++t) {
      T* const to = store.input.at(t, b);
      const T* const from = store.out.at(t, b);
      if (to != from) std::copy_n(from, shared_.spec().output_size(), to);
      shared_.drop(layer, t, b, me_.space.mask, to);
    }
  }
}

template <class T>
void ForwardRows<T>::finish_output() noexcept {
  const RnnSpec& spec = shared_.spec();
  const ForwardArgs& args = shared_.args;
  if (!args.y) return;
  const auto y = sequence_rows<T>(args.y, spec, args, spec.output_size());
  const Grid<T>& out = run_.scratch.layers[spec.num_layers - 1].out;
  const bool elsewhere = out.base != args.y;
  for (std::int64_t i = me_.index; i < me_.rows; i += me_.members) {
    const std::int64_t b = shared_.row(me_, i), length = shared_.rows.length(b);
    for (std::int64_t t = elsewhere ? 0 : length; t < args.max_time; ++t) {
      y.store(shared_.packed.table(), t, b, spec.output_size(),
              t < length ? out.at(t, b) : nullptr);
    }
  }
}

template class ForwardRows<float>;
template class ForwardRows<double>;
template void place_layers<float>(ForwardRun<float>&);
template void place_layers<double>(ForwardRun<double>&);

}  // namespace openrnn::cpu
