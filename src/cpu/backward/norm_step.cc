#include "cpu/backward/backward_run.h"
#include "cpu/backward/blocks.h"
#include "cpu/steps/mode.h"

namespace openrnn::cpu {

// dh of the member's units for all rows, then whole rows of it, down to the gate gradients. The
// sums over a row need all units of it.
template <class T>
void BackwardRun<T>::norm_step(const Member& me, std::int64_t layer, std::int64_t d,
                               std::int64_t step, BackwardStep<T> call, std::int64_t count,
                               std::int64_t older) noexcept {
  const CpuPacked<T>& packed = shared.packed;
  const RnnSpec& spec = shared.spec();
  const BackwardSpace<T>& space = me.space;
  const auto i_d = static_cast<std::size_t>(d);
  const LayerScratch<T>& own = scratch_of(layer);
  const Grid<T>& norms = saved.layers[static_cast<std::size_t>(layer)].norms[i_d];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t b = shared.row(me, i), t = shared.time_of(d, step, b);
    space.norms[i] = norms.at(t, b);
    space.sums_of[i] = own.dsums[i_d].at(t, b);
    space.dm[i] = spec.projecting() ? own.dm[i_d].at(0, b) : space.carry[i];
  }
  // The rows that end here have the gradient of their final state in carry.
  const std::int64_t multiplied = spec.projecting() ? count : older;
  Panels<T> w = call.w;
  const bool begins_at_carry = spec.mode == RnnMode::kGru;
  const bool begun =
      multiplied > 0 &&
      multiply_in_blocks(packed, w, {space.a, multiplied, begins_at_carry, space.dm, call.units});
  packed.kernels().product({.w = w,
                            .a = space.a,
                            .a_step = 1,
                            .rows = multiplied,
                            .accumulate = begun,
                            .c = space.dm,
                            .columns = call.units});
  shared.step_barrier(me).wait(shared.plan.panel_threads);
  call.da = space.sums_of;
  call.rows = count;
  packed.kernels().norm_backward[cell_index(spec)](call, {.dh = space.dm,
                                                          .saved = space.norms,
                                                          .out = space.da,
                                                          .place = norm_row(spec),
                                                          .first = me.place.panel,
                                                          .stride = shared.plan.panel_threads});
}

template void BackwardRun<float>::norm_step(const Member&, std::int64_t, std::int64_t, std::int64_t,
                                            BackwardStep<float>, std::int64_t,
                                            std::int64_t) noexcept;
template void BackwardRun<double>::norm_step(const Member&, std::int64_t, std::int64_t,
                                             std::int64_t, BackwardStep<double>, std::int64_t,
                                             std::int64_t) noexcept;

}  // namespace openrnn::cpu
