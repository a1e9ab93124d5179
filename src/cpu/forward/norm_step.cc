#include "cpu/forward/norm_step.h"

#include <algorithm>

#include "cpu/steps/mode.h"

namespace openrnn::cpu {
namespace {

// Copies the member's part of W x, which is in its own memory, to where others find it.
template <class T>
void share_inputs(const ForwardMember<T>& me, const ForwardStep<T>& call, std::int64_t panel) {
  const std::int64_t gates = call.w.width;
  const std::int64_t first = call.w.first / gates, last = call.w.last / gates;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const T* from = call.pre + (call.pre_first + i) * panel;
    for (std::int64_t block = first; block < last; ++block, from += call.pre_rows * panel) {
      std::copy_n(from, panel, me.space.inputs[i] + block * panel);
    }
  }
}

}  // namespace

template <class T>
void run_norm_step(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
                   std::int64_t direction, std::int64_t step, const ForwardStep<T>& call) noexcept {
  const StepContext<T>& shared = run.shared;
  const CpuPacked<T>& packed = shared.packed;
  const ThreadSpace<T>& space = me.space;
  const std::int64_t width = packed.product_row(), panel = packed.gates() * packed.kernels().lanes;
  const Grid<T>& norms = run.scratch.layers[layer].norms[static_cast<std::size_t>(direction)];
  const int sharing = shared.plan.panel_threads;
  const std::int64_t side = direction * shared.args.batch;
  for (std::int64_t i = 0; i < call.rows; ++i) {
    const std::int64_t b = shared.row(me, i);
    space.products[i] = run.scratch.products + (side + b) * width;
    if (sharing > 1) space.inputs[i] = run.scratch.inputs + (side + b) * width;
    if (norms.base) space.norms[i] = norms.at(shared.time_of(direction, step, b), b);
  }
  packed.kernels().product({.w = call.w,
                            .a = call.h_prev,
                            .a_step = 1,
                            .rows = call.rows,
                            .c = space.products,
                            .columns = width});
  NormForward<T> norm{.products = space.products,
                      .input = call.pre + call.pre_first * panel,
                      .input_row = panel,
                      .input_step = call.pre_rows * panel,
                      .saved = norms.base ? space.norms : nullptr,
                      .place = norm_row(shared.spec()),
                      .first = me.place.panel,
                      .stride = sharing};
  if (sharing > 1) {
    share_inputs(me, call, panel);
    norm.inputs = space.inputs;
    norm.input_step = panel;
    // Whoever is late still finishes the step.
    shared.step_barrier(me).wait(sharing);
  }
  packed.kernels().norm_forward[cell_index(shared.spec())](call, norm);
}

template void run_norm_step<float>(const ForwardRun<float>&, const ForwardMember<float>&,
                                   std::int64_t, std::int64_t, std::int64_t,
                                   const ForwardStep<float>&) noexcept;
template void run_norm_step<double>(const ForwardRun<double>&, const ForwardMember<double>&,
                                    std::int64_t, std::int64_t, std::int64_t,
                                    const ForwardStep<double>&) noexcept;

}  // namespace openrnn::cpu
