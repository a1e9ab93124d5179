#include "cpu/backward/backward_run.h"

#include "cpu/backward/backward_rows.h"
#include "cpu/backward/blocks.h"
#include "cpu/backward/state_backward.h"
#include "cpu/steps/mode.h"

namespace openrnn::cpu {

template <class T>
void BackwardRun<T>::thread_main(int thread) noexcept {
  const Member me{shared.member(thread), scratch.threads[thread]};
  if (wave.layer_groups > 1) {
    if (run_shifted(me)) narrow_params(thread);
    return;
  }
  // The last layer alone reads it.
  if (scratch.dy_wide && user_dy.base && last_layer == shared.spec().num_layers) {
    BackwardRows<T>(*this, me).widen_output_gradient();
    shared.row_barrier(me).wait(me.members);
  }
  for (std::int64_t layer = last_layer - 1; layer >= first_layer; --layer) run_layer(me, layer);
  if (steps_only) return;
  if (dx.base && first_layer == 0) BackwardRows<T>(*this, me).finish_input_gradient();
  narrow_params(thread);
}

// float16: the caller's gradients of parameters.
template <class T>
void BackwardRun<T>::narrow_params(int thread) const noexcept {
  if constexpr (sizeof(T) == sizeof(float)) {
    const StorageKernels& storage = shared.packed.table().storage[storage_of(shared.spec().dtype)];
    const auto narrow = [&](std::int64_t size, const T* from, std::uint16_t* to) {
      if (!to) return;
      const Share own(size, 64, thread, shared.plan.threads());
      storage.narrow(from + own.first, to + own.first, own.last - own.first);
    };
    const std::int64_t size = shared.packed.layout().size();
    narrow(size, dparams, narrow_to);
    narrow((rows.last - rows.first) * size, rows.dparams, rows.narrow_to);
  }
}

template <class T>
void BackwardRun<T>::run_layer(const Member& me, std::int64_t layer) noexcept {
  const bool transposes = shared.packed.transposes();
  const int threads = shared.plan.threads();
  if (transposes) transpose_layer(layer, me.thread, false);
  for (std::int64_t d = me.place.dir_group; d < shared.spec().num_dirs();
       d += shared.plan.dir_groups) {
    if (first_direction <= d && d < directions) run_direction(me, layer, d);
  }
  // Every row's gate gradients are there.
  all_barrier->wait(threads);
  if (steps_only) return;
  const std::int64_t time = shared.args.max_time;
  if (layer > 0 || dx.base) {
    if (transposes) transpose_layer(layer, me.thread, true);
    BackwardRows<T>(*this, me).input_gradient(layer, 0, time);
  }
  if (layer > 0 && shared.dropping()) {
    shared.row_barrier(me).wait(me.members);
    BackwardRows<T>(*this, me).drop(layer, 0, time);
  }
  // They are written where transposed weights may lie.
  if (dparams && transposes) all_barrier->wait(threads);
  sum_gradients(me, layer);
  tell_of(me, layer);
}

// A thread's share of the gradients of a layer's parameters.
template <class T>
void BackwardRun<T>::sum_gradients(const Member& me, std::int64_t layer) noexcept {
  if (dparams) {
    weight_gradients(*this,
                     {.last_row = shared.args.batch,
                      .share = me.thread,
                      .shares = shared.plan.threads(),
                      .dparams = dparams,
                      .accumulate = accumulate,
                      .space = me.space},
                     layer);
  }
  row_gradients(*this, layer, me.thread);
}

// When all threads have theirs.
template <class T>
void BackwardRun<T>::tell_of(const Member& me, std::int64_t layer) noexcept {
  all_barrier->wait(shared.plan.threads());
  if (layer_done && me.thread == 0) (*layer_done)(layer);
}

template <class T>
void BackwardRun<T>::transpose_layer(std::int64_t layer, int thread, bool input) const noexcept {
  const RnnSpec& spec = shared.spec();
  const int threads = shared.plan.threads();
  for (std::int64_t d = 0; d < spec.num_dirs(); ++d) {
    (input ? transpose_input<T> : transpose_recurrent<T>)(spec, weights(layer, d), thread, threads);
  }
  all_barrier->wait(threads);
}

template <class T>
PackedLayer<T> BackwardRun<T>::weights(std::int64_t layer, std::int64_t direction) const noexcept {
  const CpuPacked<T>& packed = shared.packed;
  if (!packed.transposes()) return packed.layer(layer, direction);
  const bool shifts = wave.layer_groups > 1;
  T* const lying =
      shifts ? nullptr : transposed_in_gradient(packed, layer, direction, shared.args.batch, lent);
  T* const own = scratch_of(layer).transposed[static_cast<std::size_t>(direction)];
  return with_transposed(packed.layer(layer, direction), lying ? lying : own, shifts);
}

template <class T>
BackwardStep<T> BackwardRun<T>::step_call(const Member& me, const PackedLayer<T>& own,
                                          std::int64_t layer, std::int64_t d) const {
  const RnnSpec& spec = shared.spec();
  const PackedMatrix<T>& matrix = spec.projecting() ? own.proj_back : own.r_back;
  const Share vectors(matrix.vectors, 1, me.place.panel, shared.plan.panel_threads);
  BackwardStep<T> call{};
  call.w = matrix.panels(vectors.first, vectors.last, me.space.staging);
  call.a = me.space.a;
  call.carry = me.space.carry;
  call.dy = output_gradient(layer).base && !spec.projecting() ? me.space.dy : nullptr;
  call.gates = me.space.gates;
  call.c = me.space.c;
  call.c_prev = me.space.c_prev;
  call.h_prev = me.space.h_prev;
  call.dc = me.space.dc;
  call.da = me.space.da;
  call.units = spec.num_units;
  if (shared.packed.has_options()) {
    const int first = shared.packed.resets_before() ? kCellCandidate : cell_index(spec);
    call.options = &shared.packed.layer(layer, d).options;
    call.finish = shared.packed.kernels().cells.backward[first];
    call.saved_gates = shared.packed.saved_gates();
    call.gradient_gates = shared.packed.gradient_gates();
    call.before = spec.has_cell()          ? me.space.c_prev
                  : shared.packed.is_gru() ? me.space.h_prev
                                           : nullptr;
  }
  if (shared.splits_state() && !spec.projecting()) {
    // dh is there, in the place of carry.
    call.w.k = 0;
    call.start_at_carry = true;
    call.dy = nullptr;
  }
  shared.set_clip(call);
  return call;
}

// Points at the first `count` rows of a step.
template <class T>
void BackwardRun<T>::point(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
                           std::int64_t count) noexcept {
  const RnnSpec& spec = shared.spec();
  const LayerStore<T>& store = saved.layers[static_cast<std::size_t>(layer)];
  const auto i_d = static_cast<std::size_t>(d);
  const std::int64_t p = layer * spec.num_dirs() + d, side = d * spec.hidden_size();
  const std::int64_t back = d == 0 ? -1 : 1, recurrent = recurrent_side();
  const LayerScratch<T>& own = scratch_of(layer);
  const Grid<T> dout = output_gradient(layer);
  const BackwardSpace<T>& space = me.space;
  const T* zeros = shared.packed.zeros();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared.row(me, i), t = shared.time_of(d, step, b);
    // Rows without a later step have no product and do not read this one.
    const bool last = step + 1 == shared.rows.length(b);
    space.a[i] = last ? zeros : own.da[i_d].at(t - back, b) + recurrent;
    space.carry[i] = own.carry[i_d].at(0, b);
    if (dout.base) space.dy[i] = dout.at(t, b) + side;
    space.gates[i] = store.gates[i_d].at(t, b);
    space.da[i] = own.da[i_d].at(t, b);
    if (spec.mode == RnnMode::kGru) {
      const T* start = saved.h0.base ? saved.h0.at(p, b) : zeros;
      space.h_prev[i] = step > 0 ? store.out.at(t + back, b) + side : start;
    }
    if (spec.has_cell()) {
      const T* start = saved.c0.base ? saved.c0.at(p, b) : zeros;
      space.c[i] = (spec.zoneout_cell > 0.0 ? store.c_now[i_d] : store.c[i_d]).at(t, b);
      space.c_prev[i] = step > 0 ? store.c[i_d].at(t + back, b) : start;
      space.dc[i] = own.dc[i_d].at(0, b);
    }
  }
}

template <class T>
void BackwardRun<T>::run_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  Barrier& barrier = shared.step_barrier(me);
  const int sharing = shared.plan.panel_threads;
  begin_direction(me, layer, d);
  barrier.wait(sharing);
  run_steps(me, layer, d, 0, longest(me));
  end_direction(me, layer, d);
}

template <class T>
void BackwardRun<T>::begin_direction(const Member& me, std::int64_t layer,
                                     std::int64_t d) noexcept {
  BackwardRows<T>(*this, me).seed_states(layer, d);
  const PackedLayer<T> own = weights(layer, d);
  StateBackward<T>(*this, me, own, layer, d).draw_masks();
}

// Steps [first, end), the last one first.
template <class T>
void BackwardRun<T>::run_steps(const Member& me, std::int64_t layer, std::int64_t d,
                               std::int64_t first, std::int64_t end) noexcept {
  const PackedLayer<T> own = weights(layer, d);
  StateBackward<T> state(*this, me, own, layer, d);
  BackwardStep<T> call = step_call(me, own, layer, d);
  const Grid<T>& masks = scratch_of(layer).state_mask[static_cast<std::size_t>(d)];
  std::int64_t older = shared.active(me, end);  // rows that have a later step already behind them
  for (std::int64_t s = end - 1; s >= first; --s) {
    const std::int64_t count = shared.active(me, s);
    point(me, layer, d, s, count);
    // Alternating panel order, as in forward.
    call.w.reverse = s % 2 == 1;
    state.before_cell(call, s, count, older);
    shared.packed.normalizes() ? norm_step(me, layer, d, s, call, count, older)
                               : step(call, count, older);
    if (shared.packed.resets_before()) reset_step(me, own.r_n_back, masks, call, count);
    state.after_cell(call, count);
    shared.step_barrier(me).wait(shared.plan.panel_threads);
    older = count;
  }
}

template <class T>
void BackwardRun<T>::end_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept {
  const PackedLayer<T> own = weights(layer, d);
  if (states[static_cast<std::size_t>(d)].dh0.base) {
    StateBackward<T>(*this, me, own, layer, d).initial_state();
  }
  shared.step_barrier(me).wait(shared.plan.panel_threads);
  BackwardRows<T>(*this, me).store_states(layer, d);
}

template <class T>
void BackwardRun<T>::step(BackwardStep<T> call, std::int64_t count, std::int64_t older) noexcept {
  const CpuPacked<T>& packed = shared.packed;
  const RnnSpec& spec = shared.spec();
  const Kernels<T>& kernels = packed.kernels();
  const auto backward = call.options ? kernels.backward_cell : kernels.backward[mode_index(spec)];
  if (spec.projecting() || shared.splits_state()) {
    call.rows = count;
    return backward(call);
  }
  call.rows = older;
  call.start_at_carry = spec.mode == RnnMode::kGru;
  if (older) {
    BackwardStep<T> last = call;
    last.start_at_carry = multiply_in_blocks(
        packed, last.w, {call.a, older, call.start_at_carry, call.carry, call.units});
    backward(last);
  }
  if (older == count) return;
  // The rows that end here begin with the gradient of their final state.
  const auto skip = [older](auto*& pointers) {
    if (pointers) pointers += older;
  };
  skip(call.a), skip(call.carry), skip(call.dy), skip(call.gates), skip(call.c);
  skip(call.c_prev), skip(call.h_prev), skip(call.dc), skip(call.da), skip(call.before);
  skip(call.mask);
  call.rows = count - older;
  call.start_at_carry = true;
  call.w.k = 0;
  backward(call);
}

// The second part of a step whose reset gate applies before the product: the gradient of r h, from
// all units of n's.
template <class T>
void BackwardRun<T>::reset_step(const Member& me, const PackedMatrix<T>& matrix,
                                const Grid<T>& masks, BackwardStep<T> call,
                                std::int64_t count) noexcept {
  shared.step_barrier(me).wait(shared.plan.panel_threads);
  const Share vectors(matrix.vectors, 1, me.place.panel, shared.plan.panel_threads);
  const bool reverse = call.w.reverse;
  call.w = matrix.panels(vectors.first, vectors.last, me.space.staging);
  call.w.reverse = reverse;
  for (std::int64_t i = 0; i < count; ++i) {
    me.space.a[i] = me.space.da[i];
    me.space.masks[i] = masks.at(0, shared.row(me, i));
  }
  call.rows = count;
  call.start_at_carry = false;
  call.dy = nullptr;
  call.mask = shared.drops_state() ? me.space.masks : nullptr;
  call.finish = shared.packed.kernels().cells.backward[kCellReset];
  shared.packed.kernels().backward_cell(call);
}

template struct BackwardRun<float>;
template struct BackwardRun<double>;

}  // namespace openrnn::cpu
