#include "cpu/backward/backward_call.h"

#include "cpu/backward/backward_run.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {

template <class T>
StateGradientRows<T> state_gradients(const RnnSpec& spec, const ForwardArgs& call,
                                     const BackwardArgs& args) {
  const auto rows = [&](const void* base, std::int64_t width) {
    return state_rows<T>(base, spec, call, width);
  };
  const std::int64_t h = spec.hidden_size(), c = spec.num_units;
  return {rows(args.dhn, h), rows(args.dcn, c), rows(args.dh0, h), rows(args.dc0, c)};
}

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args) {
  const CpuPacked<T>& packed = *saved.packed;
  const RnnSpec& spec = packed.spec();
  const bool shifts = can_shift_backward(packed, saved.args);
  // About twice forward's.
  ThreadLease lease =
      lease_for(packed, saved.args, most_threads(saved.args.max_threads), shifts ? 2 : 0);
  const Plan plan = plan_for(packed, saved.args, lease, spec.num_dirs(), shifts);
  Carver measure;
  BackwardScratch<T>::carve(measure, saved, plan, args);
  const Block memory(measure.used());
  Carver carver(memory.data());
  auto scratch = BackwardScratch<T>::carve(carver, saved, plan, args);
  const auto threads = static_cast<std::size_t>(lease.threads());
  const auto barriers = std::make_unique<Barrier[]>(2 * threads + 1);
  const auto dy = sequence_rows<T>(args.dy, spec, saved.args, spec.output_size());
  const auto dx = sequence_rows<T>(args.dx, spec, saved.args, spec.input_size);
  const StateGradientRows<T> states = state_gradients<T>(spec, saved.args, args);
  const Grid<T> user_dx = grid_of(dx, scratch.dx_wide, saved.args.batch, spec.input_size);
  if (dx_serves(saved, args)) scratch.dx = user_dx;
  T* const dparams = scratch.params_wide ? scratch.params_wide : static_cast<T*>(args.dparams);
  auto* const narrow_to = scratch.params_wide ? static_cast<std::uint16_t*>(args.dparams) : nullptr;
  BackwardRun<T> run{.shared = {.packed = packed,
                                .args = saved.args,
                                .plan = plan,
                                .rows = Rows(saved.args, plan, scratch.order),
                                .row_barriers = barriers.get(),
                                .step_barriers = barriers.get() + threads},
                     .saved = saved,
                     .states = {states, states},
                     .user_dy = dy,
                     .user_dx = dx,
                     .scratch = scratch,
                     .dy = grid_of(dy, scratch.dy_wide, saved.args.batch, spec.output_size()),
                     .dx = user_dx,
                     .dparams = dparams,
                     .all_barrier = barriers.get() + 2 * threads,
                     .lent = dparams,
                     .narrow_to = narrow_to,
                     .rows = rows_wanted(spec, args, scratch.rows_wide),
                     .layer_done = dparams && !narrow_to ? args.layer_done : nullptr};
  if (args.row_norms) std::fill_n(args.row_norms, saved.args.batch, 0.0);
  lease.run([&run](int thread) { run.thread_main(thread); });
}

template StateGradientRows<float> state_gradients<float>(const RnnSpec&, const ForwardArgs&,
                                                         const BackwardArgs&);
template StateGradientRows<double> state_gradients<double>(const RnnSpec&, const ForwardArgs&,
                                                           const BackwardArgs&);
template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
