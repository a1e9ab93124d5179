#include "cpu/forward/second_products.h"

#include <algorithm>

#include "cpu/forward/step_masks.h"

namespace openrnn::cpu {
namespace {

// Clips and rounds this member's columns of h, whose rows are in the places of c.
template <class T>
void finish_projection(const ForwardRun<T>& run, const ForwardMember<T>& me, const Grid<T>& kept,
                       std::int64_t direction, std::int64_t step, std::int64_t active,
                       const Range& own) {
  const StepContext<T>& shared = run.shared;
  const RnnSpec& spec = shared.spec();
  for (std::int64_t i = 0; i < active; ++i) {
    T* const first = me.space.c[i] + own.first;
    T* const last = me.space.c[i] + own.last;
    if (spec.proj_clip) {
      const std::int64_t b = shared.row(me, i), t = shared.time_of(direction, step, b);
      if (kept.base) std::copy(first, last, kept.at(t, b) + own.first);
      const T low = static_cast<T>((*spec.proj_clip)[0]);
      const T high = static_cast<T>((*spec.proj_clip)[1]);
      std::transform(first, last, first, [=](T h) { return std::clamp(h, low, high); });
    }
    if constexpr (sizeof(T) == sizeof(float)) {
      if (is_16_bit_float(spec.dtype)) {
        shared.packed.table().storage[storage_of(spec.dtype)].round(first, last - first);
      }
    }
  }
}

}  // namespace

template <class T>
void multiply_reset_state(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                          std::int64_t direction, ForwardStep<T> call) noexcept {
  const StepContext<T>& shared = run.shared;
  const ThreadSpace<T>& space = me.space;
  // Every member reads all of r h. Whoever is late still finishes the step: the sums of W x are its
  // own.
  shared.step_barrier(me).wait(shared.plan.panel_threads);
  const CpuPacked<T>& packed = shared.packed;
  const std::int64_t gates = packed.recurrent_gates();
  const bool reverse = call.w.reverse;
  call.w = packed.layer(layer, direction)
               .r_n.panels(call.w.first / gates, call.w.last / gates, space.staging);
  call.w.reverse = reverse;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    space.c_prev[i] = space.h_prev[i];
    space.h_prev[i] = space.gates[i] + 3 * call.units;
  }
  call.c_prev = space.c_prev;
  call.operand = nullptr;
  call.finish = packed.kernels().cells.forward[kCellCandidate];
  packed.kernels().forward_cell[kCellCandidate](call);
}

template <class T>
void project_output(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                    std::int64_t direction, std::int64_t step,
                    const ForwardStep<T>& call) noexcept {
  const StepContext<T>& shared = run.shared;
  const CpuPacked<T>& packed = shared.packed;
  const PackedMatrix<T>& proj = packed.layer(layer, direction).proj;
  const Share vectors(proj.vectors, 1, me.place.panel, shared.plan.panel_threads);
  const std::int64_t columns = shared.spec().hidden_size();
  const LayerStore<T>& store = run.scratch.layers[layer];
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = shared.row(me, i), t = shared.time_of(direction, step, b);
    me.space.c[i] = store.out.at(t, b) + direction * columns;
    me.space.c_prev[i] = me.space.h[i];
  }
  packed.kernels().product({.w = proj.panels(vectors.first, vectors.last, me.space.staging),
                            .a = me.space.c_prev,
                            .a_step = 1,
                            .rows = call.rows,
                            .c = me.space.c,
                            .columns = columns});
  const Range own{vectors.first * proj.lanes, std::min(columns, vectors.last * proj.lanes)};
  if (own.first >= own.last) return;
  const Grid<T>& kept = store.projected[static_cast<std::size_t>(direction)];
  finish_projection(run, me, kept, direction, step, call.rows, own);
  ForwardMasks<T>(run, me, layer, direction).finish_state(step, call.rows, own);
}

template void multiply_reset_state<float>(const ForwardRun<float>&, const ForwardMember<float>&,
                                          std::int64_t, std::int64_t, ForwardStep<float>) noexcept;
template void multiply_reset_state<double>(const ForwardRun<double>&, const ForwardMember<double>&,
                                           std::int64_t, std::int64_t,
                                           ForwardStep<double>) noexcept;
template void project_output<float>(const ForwardRun<float>&, const ForwardMember<float>&,
                                    std::int64_t, std::int64_t, std::int64_t,
                                    const ForwardStep<float>&) noexcept;
template void project_output<double>(const ForwardRun<double>&, const ForwardMember<double>&,
                                     std::int64_t, std::int64_t, std::int64_t,
                                     const ForwardStep<double>&) noexcept;

}  // namespace openrnn::cpu
