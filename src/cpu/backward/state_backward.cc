#include "cpu/backward/state_backward.h"

#include "cpu/backward/blocks.h"

namespace openrnn::cpu {

template <class T>
void StateBackward<T>::draw_masks() noexcept {
  if (!shared_.drops_state()) return;
  for (std::int64_t i = me_.place.panel; i < me_.rows; i += shared_.plan.panel_threads) {
    const std::int64_t b = shared_.row(me_, i);
    shared_.fill_mask({MaskOf::kRecurrentState, pseudo(), 0, b},
                      shared_.spec().training.recurrent_dropout, {0, width()},
                      own_.state_mask[i_d_].at(0, b));
  }
}

template <class T>
void StateBackward<T>::before_cell(BackwardStep<T>& call, std::int64_t step, std::int64_t count,
                                   std::int64_t older) noexcept {
  if (shared_.spec().projecting() || shared_.splits_state()) output_gradient(step, count, older);
  if (shared_.drops_candidate()) mask_candidate(call, step, count);
  if (shared_.spec().zoneout_cell > 0.0) split_cells(call, step, count);
}

template <class T>
void StateBackward<T>::after_cell(const BackwardStep<T>& call, std::int64_t count) noexcept {
  const Kernels<T>& kernels = shared_.packed.kernels();
  const RnnSpec& spec = shared_.spec();
  const bool adds_state = shared_.splits_state() && shared_.packed.keeps_h();
  if (!adds_state && spec.zoneout_cell == 0.0) return;
  const Range units = units_of(call.w, spec.num_units);
  if (units.count() <= 0) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    if (adds_state) {
      kernels.add(space_.carry[i] + units.first, own_.carry[i_d_].at(0, b) + units.first,
                  units.count());
    }
    if (spec.zoneout_cell > 0.0) {
      kernels.add(own_.dc_kept[i_d_].at(0, b) + units.first, space_.dc[i] + units.first,
                  units.count());
    }
  }
}

template <class T>
Panels<T> StateBackward<T>::recurrent() const {
  const Share vectors(matrix_.vectors, 1, me_.place.panel, shared_.plan.panel_threads);
  return matrix_.panels(vectors.first, vectors.last, space_.staging);
}

// dh of the output of a step.
template <class T>
void StateBackward<T>::output_gradient(std::int64_t step, std::int64_t count,
                                       std::int64_t older) noexcept {
  const bool projecting = shared_.spec().projecting();
  Panels<T> w = recurrent();
  const Range units = units_of(w, width());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    space_.rows_c[i] = projecting ? own_.dh_proj[i_d_].at(shared_.time_of(d_, step, b), b)
                                  : own_.dh_split[i_d_].at(0, b);
  }
  if (units.count() > 0) {
    const bool begun =
        multiply_in_blocks(shared_.packed, w, {space_.a, older, false, space_.rows_c, width()});
    shared_.packed.kernels().product({.w = w,
                                      .a = space_.a,
                                      .a_step = 1,
                                      .rows = older,
                                      .accumulate = begun,
                                      .c = space_.rows_c,
                                      .columns = width()});
    for (std::int64_t i = 0; i < count; ++i) finish_row(i, step, i < older, units);
    if (shared_.spec().proj_clip) clip(step, count, units);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (projecting) {
      space_.a[i] = space_.rows_c[i];
    } else {
      space_.carry[i] = space_.rows_c[i];
    }
  }
  // The cell multiplies all of it by Wp.
  if (projecting) shared_.step_barrier(me_).wait(shared_.plan.panel_threads);
}

// What joins the product, and what zoneout leaves of the sum and keeps in carry.
template <class T>
void StateBackward<T>::finish_row(std::int64_t i, std::int64_t step, bool has_later,
                                  const Range& units) noexcept {
  const Kernels<T>& kernels = shared_.packed.kernels();
  const std::int64_t b = shared_.row(me_, i), count = units.count();
  T* const dh = space_.rows_c[i] + units.first;
  T* const carry = space_.carry[i] + units.first;
  if (!has_later) {
    std::copy_n(carry, count, dh);
  } else {
    if (shared_.drops_state()) {
      kernels.multiply(own_.state_mask[i_d_].at(0, b) + units.first, dh, count);
    }
    if (carries()) kernels.add(carry, dh, count);
  }
  if (run_.output_gradient(layer_).base) kernels.add(space_.dy[i] + units.first, dh, count);
  if (shared_.spec().zoneout > 0.0) {
    shared_.zone_out_gradient(mask_of(MaskOf::kZoneout, step, b), shared_.spec().zoneout, units,
                              space_.mask, dh, carry);
  } else if (carries()) {
    std::fill_n(carry, count, T{0});
  }
}

// Stops the gradient where the clip of the projection held h.
template <class T>
void StateBackward<T>::clip(std::int64_t step, std::int64_t count, const Range& units) noexcept {
  const auto [low, high] = *shared_.spec().proj_clip;
  const Grid<T>& raw = run_.saved.layers[static_cast<std::size_t>(layer_)].projected[i_d_];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    const T* const h = raw.at(shared_.time_of(d_, step, b), b);
    T* const dh = space_.rows_c[i];
    for (std::int64_t j = units.first; j < units.last; ++j) {
      if (h[j] < static_cast<T>(low) || static_cast<T>(high) < h[j]) dh[j] = 0;
    }
  }
}

template <class T>
void StateBackward<T>::mask_candidate(BackwardStep<T>& call, std::int64_t step,
                                      std::int64_t count) noexcept {
  const Range units = units_of(call.w, shared_.spec().num_units);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    T* const mask = own_.candidate_mask[i_d_].at(0, b);
    shared_.fill_mask(mask_of(MaskOf::kCandidate, step, b),
                      shared_.spec().training.recurrent_dropout, units, mask + units.first);
    space_.masks[i] = mask;
  }
  call.mask = space_.masks;
}

template <class T>
void StateBackward<T>::split_cells(const BackwardStep<T>& call, std::int64_t step,
                                   std::int64_t count) noexcept {
  const Range units = units_of(call.w, shared_.spec().num_units);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    shared_.zone_out_gradient(mask_of(MaskOf::kZoneoutCell, step, b), shared_.spec().zoneout_cell,
                              units, space_.mask, space_.dc[i] + units.first,
                              own_.dc_kept[i_d_].at(0, b) + units.first);
  }
}

template <class T>
void StateBackward<T>::initial_state() noexcept {
  const Panels<T> w = recurrent();
  const Range units = units_of(w, width());
  const std::int64_t count = shared_.active(me_, 0);
  const bool splits = shared_.splits_state();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared_.row(me_, i);
    space_.a[i] = own_.da[i_d_].at(shared_.time_of(d_, 0, b), b) + run_.recurrent_side();
    space_.carry[i] = own_.carry[i_d_].at(0, b);
    space_.rows_c[i] = splits ? own_.dh_split[i_d_].at(0, b) : space_.carry[i];
  }
  const Kernels<T>& kernels = shared_.packed.kernels();
  kernels.product({.w = w,
                   .a = space_.a,
                   .a_step = 1,
                   .rows = count,
                   .accumulate = !splits && shared_.packed.keeps_h(),
                   .c = space_.rows_c,
                   .columns = width()});
  for (std::int64_t i = 0; splits && units.count() > 0 && i < count; ++i) {
    T* const dh = space_.rows_c[i] + units.first;
    T* const carry = space_.carry[i] + units.first;
    if (shared_.drops_state()) {
      const T* const mask = own_.state_mask[i_d_].at(0, shared_.row(me_, i));
      kernels.multiply(mask + units.first, dh, units.count());
    }
    if (carries()) {
      kernels.add(dh, carry, units.count());
    } else {
      std::copy_n(dh, units.count(), carry);
    }
  }
}

template class StateBackward<float>;
template class StateBackward<double>;

}  // namespace openrnn::cpu
