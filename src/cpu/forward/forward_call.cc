#include "cpu/forward/forward_call.h"

#include "base/message.h"
#include "cpu/forward/forward_rows.h"
#include "cpu/steps/threads.h"

namespace openrnn::cpu {
namespace {

template <class T>
ForwardRun<T> make_run(const CpuPacked<T>& packed, const ForwardArgs& args,
                       const Scratch<T>& scratch, ThreadLease& lease, Barrier* barriers,
                       bool shifts) {
  const Plan plan = plan_for(packed, args, lease, packed.spec().num_dirs(), shifts);
  return {.shared = {.packed = packed,
                     .args = args,
                     .plan = plan,
                     .rows = Rows(args, plan, scratch.order),
                     .row_barriers = barriers,
                     .step_barriers = barriers + plan.threads()},
          .scratch = scratch,
          .room = {args.batch, args.max_time, plan.threads()}};
}

// The caller's float32 or float64 data is read where it lies.
template <class T>
void place_inputs(ForwardRun<T>& run) {
  const RnnSpec& spec = run.shared.spec();
  const ForwardArgs& args = run.shared.args;
  const auto direct = [](const UserRows<T>& rows) {
    return Grid<T>{static_cast<T*>(const_cast<void*>(rows.base)), rows.step, rows.row};
  };
  run.gather = is_16_bit_float(spec.dtype);
  if (!run.gather) {
    run.x = direct(sequence_rows<T>(args.x, spec, args, spec.input_size));
    run.h0 = direct(state_rows<T>(args.h0, spec, args, spec.hidden_size()));
    run.c0 = direct(state_rows<T>(args.c0, spec, args, spec.num_units));
    return;
  }
  const auto dense = [&](T* base, std::int64_t width) {
    return Grid<T>{base, args.batch * width, width};
  };
  run.x = dense(run.scratch.x, spec.input_size);
  run.h0 = dense(args.h0 ? run.scratch.h0 : nullptr, spec.hidden_size());
  run.c0 = dense(args.c0 ? run.scratch.c0 : nullptr, spec.num_units);
}

template <class T>
std::shared_ptr<const CpuPacked<T>> packed_for_training(const ForwardArgs& args) {
  auto packed = std::static_pointer_cast<const CpuPacked<T>>(args.params);
  if (packed->purpose() == PackFor::kTraining) return packed;
  throw StateError(
      "[forward_saving] params are packed for inference, expected them packed for training");
}

}  // namespace

template <class T>
CpuWorkspace<T>::CpuWorkspace(std::shared_ptr<const PackedParams> params, const Room& room)
    : params_(std::move(params)),
      room_(room),
      barriers_(std::make_unique<Barrier[]>(2 * static_cast<std::size_t>(room.threads))) {
  const auto& packed = static_cast<const CpuPacked<T>&>(*params_);
  Carver measure;
  Scratch<T>::carve(measure, packed, room_, false);
  memory_ = Block(measure.used());
}

template <class T>
Scratch<T> CpuWorkspace<T>::carve(const CpuPacked<T>& packed, const Room& call) const {
  if (params_.get() != &packed) {
    throw ArgumentError("[forward] workspace was made for other params, expected the call's own");
  }
  if (call.batch > room_.batch || call.max_time > room_.max_time) {
    throw ArgumentError(message("[forward] batch is ", call.batch, " and max_time ", call.max_time,
                                ", expected at most the workspace's ", room_.batch, " and ",
                                room_.max_time));
  }
  Carver carver(memory_.data());
  return Scratch<T>::carve(carver, packed, {call.batch, call.max_time, room_.threads}, false);
}

template <class T>
std::unique_ptr<Workspace> prepared_workspace(std::shared_ptr<const PackedParams> params,
                                              const Room& room) {
  const auto& packed = static_cast<const CpuPacked<T>&>(*params);
  ForwardArgs largest{};
  largest.batch = room.batch;
  largest.max_time = room.max_time;
  // What the first call would measure otherwise.
  if (wanted_threads(packed, largest, room.threads) > 1) {
    (void)plan_question(packed, largest, room.threads, 0);
  }
  return std::make_unique<CpuWorkspace<T>>(std::move(params), room);
}

template <class T>
void forward_call(const ForwardArgs& args, Workspace* workspace) {
  const auto& packed = static_cast<const CpuPacked<T>&>(*args.params);
  if (!workspace) {
    const int most = most_threads(args.max_threads);
    CpuWorkspace<T> own(args.params, {args.batch, args.max_time, most});
    return forward_call<T>(args, &own);
  }
  auto* mine = dynamic_cast<CpuWorkspace<T>*>(workspace);
  if (!mine) throw ArgumentError("[forward] workspace is another engine's, expected the cpu's own");
  const Scratch<T> scratch = mine->carve(packed, {args.batch, args.max_time, 1});
  const int most = std::min(most_threads(args.max_threads), mine->room().threads);
  ThreadLease lease = lease_for(packed, args, most);
  const bool shifts =
      scratch.outs == packed.spec().num_layers - 1 && can_shift_layers(packed, args, false);
  auto run = make_run<T>(packed, args, scratch, lease, mine->barriers(), shifts);
  place_inputs(run);
  place_layers(run);
  run_forward(run, lease);
}

template <class T>
std::unique_ptr<SavedForward> forward_saving_call(const ForwardArgs& args) {
  auto packed = packed_for_training<T>(args);
  auto saved = std::make_unique<CpuSaved<T>>(packed, args);
  const int most = most_threads(args.max_threads);
  const Room room{args.batch, args.max_time, most};
  Carver measure;
  Scratch<T>::carve(measure, *packed, room, true);
  const Block memory(measure.used());
  Carver carver(memory.data());
  Scratch<T> scratch = Scratch<T>::carve(carver, *packed, room, true);
  scratch.layers = saved->layers.data();
  const auto barriers = std::make_unique<Barrier[]>(2 * static_cast<std::size_t>(most));
  ThreadLease lease = lease_for(*packed, args, most);
  auto run = make_run<T>(*packed, args, scratch, lease, barriers.get(),
                         can_shift_layers(*packed, args, true));
  run.gather = true;
  run.x = saved->x;
  run.h0 = saved->h0;
  run.c0 = saved->c0;
  run_forward(run, lease);
  saved->forget_arrays();
  return saved;
}

template <class T>
std::unique_ptr<SavedForward> saved_in_reserve(const ForwardArgs& args) {
  auto saved = std::make_unique<CpuSaved<T>>(packed_for_training<T>(args), args);
  saved->forget_arrays();
  return saved;
}

template <class T>
std::unique_ptr<SavedForward> forward_recomputed_call(const ForwardArgs& args) {
  auto packed = packed_for_training<T>(args);
  auto saved = std::make_unique<CpuRecomputed<T>>(packed, args);
  const int most = most_threads(args.max_threads);
  const CpuWorkspace<T> own(args.params, {args.batch, args.max_time, most});
  const Scratch<T> scratch = own.carve(*packed, {args.batch, args.max_time, 1});
  ThreadLease lease = lease_for(*packed, args, most);
  auto run = make_run<T>(*packed, args, scratch, lease, own.barriers(), false);
  run.gather = true;
  run.x = saved->x;
  run.h0 = saved->h0;
  run.c0 = saved->c0;
  run.borders = &saved->borders;
  place_layers(run);
  run_forward(run, lease);
  return saved;
}

template std::unique_ptr<Workspace> prepared_workspace<float>(std::shared_ptr<const PackedParams>,
                                                              const Room&);
template std::unique_ptr<Workspace> prepared_workspace<double>(std::shared_ptr<const PackedParams>,
                                                               const Room&);
template void forward_call<float>(const ForwardArgs&, Workspace*);
template void forward_call<double>(const ForwardArgs&, Workspace*);
template std::unique_ptr<SavedForward> forward_saving_call<float>(const ForwardArgs&);
template std::unique_ptr<SavedForward> forward_saving_call<double>(const ForwardArgs&);
template std::unique_ptr<SavedForward> saved_in_reserve<float>(const ForwardArgs&);
template std::unique_ptr<SavedForward> saved_in_reserve<double>(const ForwardArgs&);
template std::unique_ptr<SavedForward> forward_recomputed_call<float>(const ForwardArgs&);
template std::unique_ptr<SavedForward> forward_recomputed_call<double>(const ForwardArgs&);
template class CpuWorkspace<float>;
template class CpuWorkspace<double>;

}  // namespace openrnn::cpu
