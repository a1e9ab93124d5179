#include "cpu/forward/step_masks.h"

#include <algorithm>

namespace openrnn::cpu {

template <class T>
bool ForwardMasks<T>::begin() const noexcept {
  if (!shared_.drops_state()) return false;
  const RnnSpec& spec = shared_.spec();
  const std::int64_t width = spec.hidden_size();
  for (std::int64_t i = me_.place.panel; i < me_.rows; i += shared_.plan.panel_threads) {
    const std::int64_t b = shared_.row(me_, i);
    if (shared_.rows.length(b) == 0) continue;
    T* const mask = state_mask(b);
    shared_.fill_mask({MaskOf::kRecurrentState, pseudo(), 0, b}, spec.training.recurrent_dropout,
                      {0, width}, mask);
    T* const to = store_.entering(static_cast<std::size_t>(d_), 0, b);
    std::copy_n(run_.h0.base ? run_.h0.at(pseudo(), b) : shared_.packed.zeros(), width, to);
    shared_.packed.kernels().multiply(mask, to, width);
  }
  return true;
}

template <class T>
void ForwardMasks<T>::before(std::int64_t step, ForwardStep<T>& call) const noexcept {
  const ThreadSpace<T>& space = me_.space;
  if (shared_.drops_state()) {
    for (std::int64_t i = 0; i < call.rows; ++i) {
      space.operand[i] = store_.entering(static_cast<std::size_t>(d_), step, shared_.row(me_, i));
    }
    call.operand = space.operand;
  }
  if (!shared_.drops_candidate()) return;
  const RnnSpec& spec = shared_.spec();
  const Range units = units_of(call);
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    T* const mask = run_.scratch.candidate_mask + (d_ * shared_.args.batch + b) * spec.num_units;
    shared_.fill_mask(mask_of(MaskOf::kCandidate, shared_.time_of(d_, step, b), b),
                      spec.training.recurrent_dropout, units, mask + units.first);
    space.masks[i] = mask;
  }
  call.mask = space.masks;
}

template <class T>
Range ForwardMasks<T>::units_of(const ForwardStep<T>& call) const noexcept {
  const CpuPacked<T>& packed = shared_.packed;
  return cpu::units_of(call.w, packed.recurrent_gates(), packed.kernels().lanes,
                       shared_.spec().num_units);
}

template <class T>
void ForwardMasks<T>::finish_cells(std::int64_t step, const ForwardStep<T>& call) const noexcept {
  const RnnSpec& spec = shared_.spec();
  if (spec.zoneout_cell == 0.0) return;
  const ThreadSpace<T>& space = me_.space;
  const Range units = units_of(call);
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = shared_.row(me_, i), t = shared_.time_of(d_, step, b);
    T* const kept = store_.c[static_cast<std::size_t>(d_)].at(t, b);
    shared_.zone_out(mask_of(MaskOf::kZoneoutCell, t, b), spec.zoneout_cell, units, space.mask,
                     space.c_prev[i] + units.first, space.c[i] + units.first, kept + units.first);
    space.c[i] = kept;
  }
}

template <class T>
void ForwardMasks<T>::finish_state(std::int64_t step, std::int64_t rows,
                                   const Range& units) const noexcept {
  const RnnSpec& spec = shared_.spec();
  const bool drops = shared_.drops_state(), zones = spec.zoneout > 0.0;
  if ((!drops && !zones) || units.count() <= 0) return;
  // A reset before the product has put its own rows in the place of h_prev.
  const T* const* const before =
      shared_.packed.resets_before() ? me_.space.c_prev : me_.space.h_prev;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t b = shared_.row(me_, i), t = shared_.time_of(d_, step, b);
    T* const h = store_.out.at(t, b) + d_ * spec.hidden_size() + units.first;
    if (zones) {
      shared_.zone_out(mask_of(MaskOf::kZoneout, t, b), spec.zoneout, units, me_.space.mask,
                       before[i] + units.first, h, h);
    }
    if (!drops || step + 1 == shared_.rows.length(b)) continue;
    T* const next = store_.entering(static_cast<std::size_t>(d_), step + 1, b) + units.first;
    std::copy_n(h, units.count(), next);
    shared_.packed.kernels().multiply(state_mask(b) + units.first, next, units.count());
  }
}

template class ForwardMasks<float>;
template class ForwardMasks<double>;

}  // namespace openrnn::cpu
