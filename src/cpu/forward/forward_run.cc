#include "cpu/forward/forward_run.h"

#include "cpu/forward/forward_rows.h"
#include "cpu/forward/norm_step.h"
#include "cpu/forward/second_products.h"
#include "cpu/forward/step_masks.h"
#include "cpu/steps/mode.h"
#include "cpu/steps/saved.h"

namespace openrnn::cpu {

// False when this thread's part is over: a member was late, and the caller finishes alone, which is
// possible at barriers of all threads of the call. No thread is inside a piece then, so that those
// that leave touch nothing afterwards, and what is done stays done.
template <class T>
bool ForwardRun<T>::wait(Member& me, Barrier& barrier, int members) noexcept {
  const bool all = members == shared.plan.threads(), caller = me.thread == 0;
  if (!barrier.wait(members) || !all) return true;
  // A thread that leaves may not look at the plan any more.
  if (!caller) return false;
  went_on_alone();
  shared.plan = {};
  me.place = {};
  me.index = 0;
  me.members = 1;
  const ForwardArgs& args = shared.args;
  me.space = scratch.of_thread(0, shared.packed, {args.batch, args.max_time, 1});
  return true;
}

template <class T>
void ForwardRun<T>::thread_main(int thread) noexcept {
  Member me{shared.member(thread), scratch.of_thread(thread, shared.packed, room)};
  if (wave.layer_groups > 1) {
    run_shifted(me);
    return;
  }
  if (gather) ForwardRows<T>(*this, me).gather_inputs();
  if (gather && !wait(me, shared.row_barrier(me), me.members)) return;
  if (run_layers(me)) ForwardRows<T>(*this, me).finish_output();
}

// Whether this thread still takes part.
template <class T>
bool ForwardRun<T>::run_layers(Member& me) noexcept {
  const RnnSpec& spec = shared.spec();
  Barrier& barrier = shared.row_barrier(me);
  for (std::int64_t layer = first_layer; layer < layers; ++layer) {
    for (std::int64_t d = me.place.dir_group; d < spec.num_dirs(); d += shared.plan.dir_groups) {
      if (layer + 1 == layers && (d < first_direction || d >= directions)) continue;
      if (!run_direction(me, layer, d)) return false;
    }
    if (!wait(me, barrier, me.members)) return false;
    ForwardRows<T>(*this, me).finish_layer(layer);
    if (shared.dropping() && layer + 1 < layers) {
      // States are read from the outputs before dropout may overwrite them.
      if (!wait(me, barrier, me.members)) return false;
      ForwardRows<T>(*this, me).drop_outputs(layer, 0, shared.args.max_time);
      if (!wait(me, barrier, me.members)) return false;
    }
  }
  return true;
}

// The step after the last one that still fits a chunk; a chunk has one step at least.
template <class T>
std::int64_t ForwardRun<T>::chunk_end(const Member& me, std::int64_t step, std::int64_t end,
                                      std::int64_t most_rows) const {
  std::int64_t sum = 0;
  for (const std::int64_t first = step; step < end; ++step) {
    const std::int64_t count = shared.active(me, step);
    sum += count;
    if (count == 0 || (sum > most_rows && step > first)) return step;
  }
  return step;
}

template <class T>
ForwardStep<T> ForwardRun<T>::step_call(const Member& me, std::int64_t layer,
                                        std::int64_t direction,
                                        const Share& vectors) const noexcept {
  const RnnSpec& spec = shared.spec();
  const PackedLayer<T>& weights = shared.packed.layer(layer, direction);
  ForwardStep<T> call{};
  // Of these units, as many gates as the product has.
  const std::int64_t gates = shared.packed.gates(), own = shared.packed.recurrent_gates();
  call.w =
      weights.r.panels(vectors.first / gates * own, vectors.last / gates * own, me.space.staging);
  call.pre = me.space.pre;
  if (shared.packed.has_options()) {
    call.options = &weights.options;
    call.finish = shared.packed.kernels().cells.forward[cell_index(spec)];
  }
  call.bias = weights.bias;
  call.hn_bias = weights.hn_bias;
  call.units = spec.num_units;
  shared.set_clip(call);
  call.round_c = storage_of(spec.dtype);
  call.round_h = spec.projecting() ? kStorageWide : call.round_c;
  call.rows = me.rows;
  const Grid<T>& kept = scratch.layers[layer].gates[static_cast<std::size_t>(direction)];
  call.streams = kept.base && streams_gates(shared.packed, shared.args, own_layers(),
                                            shared.plan.threads(), kept);
  return call;
}

// Whether this thread still takes part.
template <class T>
bool ForwardRun<T>::run_direction(Member& me, std::int64_t layer, std::int64_t direction) noexcept {
  if (ForwardMasks<T>(*this, me, layer, direction).begin() &&
      !wait(me, shared.step_barrier(me), shared.plan.panel_threads)) {
    return false;
  }
  return run_steps(me, layer, direction, 0, shared.args.max_time);
}

// Steps [first, end), as far as there are rows.
template <class T>
bool ForwardRun<T>::run_steps(Member& me, std::int64_t layer, std::int64_t direction,
                              std::int64_t first, std::int64_t end) noexcept {
  const CpuPacked<T>& packed = shared.packed;
  const PackedMatrix<T>& matrix = packed.layer(layer, direction).w;
  const std::int64_t grain = packed.gates() == 1 ? 1 : matrix.width;
  while (true) {
    const int sharing = shared.plan.panel_threads;
    const Share vectors(matrix.vectors, grain, me.place.panel, sharing);
    const std::int64_t own = (vectors.last - vectors.first) * matrix.lanes;
    const std::int64_t most =
        own ? std::min(me.space.a_rows, me.space.pre_size / own) : me.space.a_rows;
    const std::int64_t last = chunk_end(me, first, end, most);
    if (last == first) return true;
    project(me, layer, direction, first, last, vectors);
    ForwardStep<T> call = step_call(me, layer, direction, vectors);
    for (std::int64_t s = first; s < last; ++s) call.pre_rows += shared.active(me, s);
    do {
      if (!step(me, layer, direction, first, call)) return false;
      // A caller that goes on alone has more to project.
    } while (++first < last && shared.plan.panel_threads == sharing);
  }
}

template <class T>
void ForwardRun<T>::project(const Member& me, std::int64_t layer, std::int64_t direction,
                            std::int64_t first, std::int64_t last, const Share& vectors) noexcept {
  const CpuPacked<T>& packed = shared.packed;
  const PackedLayer<T>& weights = packed.layer(layer, direction);
  const Grid<T>& input = layer == 0 ? x : scratch.layers[layer - 1].input;
  std::int64_t count = 0;
  for (std::int64_t s = first; s < last; ++s) {
    const std::int64_t active = shared.active(me, s);
    for (std::int64_t i = 0; i < active; ++i) {
      const std::int64_t b = shared.row(me, i);
      me.space.a[count++] = input.at(shared.time_of(direction, s, b), b);
    }
  }
  if (layer == 0 && shared.spec().skips_input()) {
    packed.kernels().skip({.gates = packed.gates(),
                           .first = vectors.first,
                           .last = vectors.last,
                           .width = weights.w.width,
                           .x = me.space.a,
                           .rows = count,
                           .pre = me.space.pre,
                           .units = shared.spec().num_units});
    return;
  }
  packed.kernels().product({.w = weights.w.panels(vectors.first, vectors.last, me.space.staging),
                            .a = me.space.a,
                            .a_step = 1,
                            .rows = count,
                            .pre = me.space.pre});
}

// Points the call at the rows of a step.
template <class T>
void ForwardRun<T>::point(const Member& me, std::int64_t layer, std::int64_t direction,
                          std::int64_t step, ForwardStep<T>& call) noexcept {
  const RnnSpec& spec = shared.spec();
  const LayerStore<T>& store = scratch.layers[layer];
  const auto d = static_cast<std::size_t>(direction);
  const std::int64_t p = layer * spec.num_dirs() + direction;
  const std::int64_t side = direction * spec.hidden_size(), back = direction == 0 ? -1 : 1;
  const ThreadSpace<T>& space = me.space;
  const T* const zeros = shared.packed.zeros();
  const bool keeps = store.gates[d].base != nullptr;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = shared.row(me, i);
    const std::int64_t t = shared.time_of(direction, step, b);
    T* const h = store.out.at(t, b) + side;
    space.h[i] = spec.projecting() ? store.h_tilde[d].at(t, b) : h;
    if (step > 0) {
      space.h_prev[i] = store.out.at(t + back, b) + side;
    } else {
      space.h_prev[i] = h0.base ? h0.at(p, b) : zeros;
    }
    if (spec.has_cell()) {
      space.c[i] = (spec.zoneout_cell > 0.0 ? store.c_now[d] : store.c[d]).at(t, b);
      space.c_prev[i] = step > 0 ? store.c[d].at(t + back, b) : c0.base ? c0.at(p, b) : zeros;
    }
    if (keeps) space.gates[i] = store.gates[d].at(t, b);
  }
  call.h_prev = space.h_prev;
  call.c_prev = space.c_prev;
  call.c = space.c;
  call.h = space.h;
  call.gates = keeps ? space.gates : nullptr;
}

template <class T>
bool ForwardRun<T>::step(Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
                         ForwardStep<T>& call) noexcept {
  const RnnSpec& spec = shared.spec();
  const ForwardArgs& args = shared.args;
  call.rows = shared.active(me, step);
  point(me, layer, direction, step, call);
  const ForwardMasks<T> masks(*this, me, layer, direction);
  const bool masked = shared.masks_steps();
  if (masked) masks.before(step, call);
  // Alternating panel order: what of the weights stayed in the cache after a step is read first in
  // the next.
  call.w.reverse = step % 2 == 1;
  const Kernels<T>& kernels = shared.packed.kernels();
  if (shared.packed.normalizes()) {
    run_norm_step(*this, me, layer, direction, step, call);
  } else if (call.options) {
    kernels.forward_cell[cell_index(spec)](call);
    if (shared.packed.resets_before()) multiply_reset_state(*this, me, layer, direction, call);
  } else {
    kernels.forward[mode_index(spec)](call);
  }
  call.pre_first += call.rows;
  if (masked) masks.finish_cells(step, call);
  if (args.layer_cells && args.layer_cells[layer]) {
    ForwardRows<T>(*this, me).keep_cells(layer, direction, step, call);
  }
  if (borders && spec.has_cell()) {
    ForwardRows<T>(*this, me).keep_border_cells(layer, direction, step, call);
  }
  if (masked && !spec.projecting()) masks.finish_state(step, call.rows, masks.units_of(call));
  Barrier& barrier = shared.step_barrier(me);
  if (!wait(me, barrier, shared.plan.panel_threads)) return false;
  if (!spec.projecting()) return true;
  project_output(*this, me, layer, direction, step, call);
  return wait(me, barrier, shared.plan.panel_threads);
}

template struct ForwardRun<float>;
template struct ForwardRun<double>;

}  // namespace openrnn::cpu
