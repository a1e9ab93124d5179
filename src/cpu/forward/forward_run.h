// The forward pass on the packed weights.
#pragma once

#include "cpu/forward/scratch.h"
#include "cpu/threading/thread_lease.h"

namespace openrnn::cpu {

/// What every thread of one forward call shares. Filled by the caller; thread_main runs on each.
template <class T>
struct ForwardRun {
  const CpuPacked<T>& packed;
  const ForwardArgs& args;
  Plan plan;
  Rows rows;
  Scratch<T> scratch;
  Room room;
  bool saving = false;

  // Where layer 0 and the first steps read; x and states are gathered there first when `gather`.
  Grid<T> x;
  Grid<T> h0, c0;  // [L*D][B]; base null: zeros
  bool gather = false;
  bool dropping = false;  // dropout is on

  Barrier* row_barriers;   // one a row group
  Barrier* step_barriers;  // one a row group and direction

  void thread_main(int thread) noexcept;

 private:
  struct Member;
  bool meet(Member& me, Barrier& barrier, int members) noexcept;
  void gather_inputs(const Member& me) noexcept;
  bool run_layers(Member& me) noexcept;
  bool run_direction(Member& me, std::int64_t layer, std::int64_t direction) noexcept;
  ForwardStep<T> step_call(const Member& me, std::int64_t layer, std::int64_t direction,
                           const Share& vectors) const noexcept;
  std::int64_t chunk_end(const Member& me, std::int64_t step, std::int64_t most_rows) const;
  void project(const Member& me, std::int64_t layer, std::int64_t direction, std::int64_t first,
               std::int64_t last, const Share& vectors) noexcept;
  bool step(Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
            ForwardStep<T>& call) noexcept;
  void project_output(const Member& me, std::int64_t layer, std::int64_t direction,
                      std::int64_t active) noexcept;
  void keep_cells(const Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
                  const ForwardStep<T>& call) noexcept;
  void finish_layer(const Member& me, std::int64_t layer) noexcept;
  void finish_every(const Member& me, std::int64_t layer) noexcept;
  void drop(const Member& me, std::int64_t layer) noexcept;
  void finish_output(const Member& me) noexcept;

  std::int64_t active(const Member& me, std::int64_t step, std::int64_t from) const;
  // The time of step `step` of row `b`: the backward direction begins at the row's own end.
  std::int64_t time_of(std::int64_t direction, std::int64_t step, std::int64_t b) const {
    return direction == 0 ? step : rows.length(b) - 1 - step;
  }
};

/// Points every layer of a run that saves nothing at its scratch memory.
template <class T>
void place_layers(ForwardRun<T>& run);

/// Runs `run` on the threads of `lease`.
template <class T>
void run_forward(ForwardRun<T>& run, ThreadLease& lease);

extern template struct ForwardRun<float>;
extern template struct ForwardRun<double>;

}  // namespace openrnn::cpu
