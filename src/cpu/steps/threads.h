// How many threads a call has, and how they divide it.
#pragma once

#include "cpu/pack/packed.h"
#include "cpu/plan/plan.h"
#include "cpu/threading/thread_lease.h"

namespace openrnn::cpu {

/// Threads that a call asks for: a few multiplications are not worth waking a worker.
template <class T>
int wanted_threads(const CpuPacked<T>& packed, const ForwardArgs& args, int most) {
  const double work = static_cast<double>(packed.layout().size()) *
                      static_cast<double>(args.batch) * static_cast<double>(args.max_time);
  return threads_for(work, kAloneNetwork, most);
}

template <class T>
PlanQuestion plan_question(const CpuPacked<T>& packed, const ForwardArgs& args, int threads,
                           double latency) {
  const Kernels<T>& kernels = packed.kernels();
  const Arithmetic arithmetic = packed.arithmetic();
  const PackedMatrix<T>& r = packed.layer(0, 0).r;
  const RowAndPanels<T> far{r.panels(0, r.vectors, {}), packed.zeros()};
  const bool near = l2_holds_steps(packed.spec(), kernels.lanes, sizeof(T), arithmetic);
  return {.spec = packed.spec(),
          .batch = args.batch,
          .lanes = kernels.lanes,
          .element = sizeof(T),
          .threads = threads,
          .rates = rates_of(kernels, arithmetic, near ? nullptr : &far),
          .barrier_latency = latency,
          .arithmetic = arithmetic};
}

/// A lease for a call, of which a forward pass takes `passes` times its time.
template <class T>
ThreadLease lease_for(const CpuPacked<T>& packed, const ForwardArgs& args, int most,
                      double passes = 1) {
  const int wanted = wanted_threads(packed, args, most);
  // What one thread does is not measured: it would wait for that.
  if (wanted == 1 || passes == 0) return ThreadLease(wanted);
  return ThreadLease(wanted,
                     passes * seconds_alone(plan_question(packed, args, 1, 0), args.max_time));
}

/// Whether layers can be shifted in time: a later one needs the steps before alone, and nothing of
/// a step is in memory that layers share. A call that is `saving` keeps outputs and what dropout
/// leaves of them apart.
template <class T>
bool can_shift_layers(const CpuPacked<T>& packed, const ForwardArgs& args, bool saving) {
  const RnnSpec& spec = packed.spec();
  const bool dropping = !saving && args.training && spec.training.dropout > 0.0;
  return spec.num_layers > 1 && spec.num_dirs() == 1 && !dropping && !spec.projecting() &&
         !packed.normalizes() && !packed.hands_on_gates() && spec.zoneout == 0.0 &&
         spec.zoneout_cell == 0.0 && !spec.training.drops_state() &&
         !spec.training.drops_candidate();
}

/// How the threads of `lease` divide a call, of which `directions` may run at once, and of which
/// layers may be shifted if it `shifts`; it returns those that are not needed.
template <class T>
Plan plan_for(const CpuPacked<T>& packed, const ForwardArgs& args, ThreadLease& lease,
              std::int64_t directions, bool shifts = false) {
  const double latency = lease.barrier_latency();
  if (lease.threads() == 1) {  // which measures nothing
    lease.keep(1);
    return {};
  }
  PlanQuestion question = plan_question(packed, args, lease.threads(), latency);
  question.directions = directions;
  question.wave_time = shifts ? args.max_time : 0;
  const Plan plan = choose_plan(question);
  lease.keep(plan.threads());
  return plan;
}

template <class T>
Plan plan_for(const CpuPacked<T>& packed, const ForwardArgs& args, ThreadLease& lease) {
  return plan_for(packed, args, lease, packed.spec().num_dirs());
}

}  // namespace openrnn::cpu
