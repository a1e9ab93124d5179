// The engine's calls for one element type.
#pragma once

#include "cpu/rnn/saved.h"

namespace openrnn::cpu {

/// Scratch memory for calls up to a size on up to a number of threads.
template <class T>
class CpuWorkspace final : public Workspace {
 public:
  CpuWorkspace(std::shared_ptr<const PackedParams> params, const Room& room);

  const PackedParams* params() const noexcept { return params_.get(); }
  const Room& room() const noexcept { return room_; }
  /// The memory for a call of this size. Throws: ArgumentError when it is larger than the room.
  Scratch<T> carve(const CpuPacked<T>& packed, const Room& call) const;
  Barrier* barriers() const noexcept { return barriers_.get(); }

 private:
  std::shared_ptr<const PackedParams> params_;
  Room room_;
  Block memory_;
  std::unique_ptr<Barrier[]> barriers_;
};

/// Threads that a call asks for: a few multiplications are not worth waking anyone.
template <class T>
int wanted_threads(const CpuPacked<T>& packed, const ForwardArgs& args, int most) {
  constexpr double kAloneWork = 1 << 18;
  const double work = static_cast<double>(packed.layout().size()) *
                      static_cast<double>(args.batch) * static_cast<double>(args.max_time);
  return threads_for(work, kAloneWork, most);
}

template <class T>
PlanQuestion plan_question(const CpuPacked<T>& packed, const ForwardArgs& args, int threads) {
  return {packed.spec(), args.batch, packed.kernels().lanes,
          sizeof(T),     threads,    packed.arithmetic()};
}

/// Seconds that one thread would take, roughly, for whoever asks for more.
template <class T>
double alone_seconds(const CpuPacked<T>& packed, const ForwardArgs& args) {
  return seconds_alone(plan_question(packed, args, 1), args.max_time);
}

/// How the threads of `lease` divide a call; it lets go of those that are not needed.
template <class T>
Plan plan_for(const CpuPacked<T>& packed, const ForwardArgs& args, TeamLease& lease) {
  const double meeting = lease.meeting_seconds();
  PlanQuestion question = plan_question(packed, args, lease.threads());
  question.meeting = meeting;
  const Plan plan = choose_plan(question);
  lease.keep(plan.threads());
  return plan;
}

template <class T>
void forward_call(const ForwardArgs& args, Workspace* workspace);

template <class T>
std::unique_ptr<SavedForward> forward_saving_call(const ForwardArgs& args);

template <class T>
void backward_call(const CpuSaved<T>& saved, const BackwardArgs& args);

extern template void forward_call<float>(const ForwardArgs&, Workspace*);
extern template void forward_call<double>(const ForwardArgs&, Workspace*);
extern template std::unique_ptr<SavedForward> forward_saving_call<float>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> forward_saving_call<double>(const ForwardArgs&);
extern template void backward_call<float>(const CpuSaved<float>&, const BackwardArgs&);
extern template void backward_call<double>(const CpuSaved<double>&, const BackwardArgs&);

}  // namespace openrnn::cpu
