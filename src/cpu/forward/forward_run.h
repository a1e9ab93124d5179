// The forward pass on the packed weights.
//
// Letters: T steps, B rows of the batch, U units, O size of the output of a direction (U, or P with
// a projection), G gates of a unit, L layers, D directions. Shapes are row-major.
//
// | what               | shape                                            |
// |--------------------|--------------------------------------------------|
// | x                  | [T][B][I]                                        |
// | h0, c0             | [L*D][B][O], [U]                                 |
// | output of a layer  | [T][B][D*O]                                      |
// | saved gates, cells | [T][B][G*U], [U] of a direction                  |
// | pre-activations    | [vectors][rows of a chunk][lanes], see kernels.h |
#pragma once

#include "cpu/forward/scratch.h"
#include "cpu/steps/context.h"
#include "cpu/steps/recomputed.h"
#include "cpu/threading/thread_lease.h"

namespace openrnn::cpu {

template <class T>
struct ForwardMember : StepMember {
  ThreadSpace<T> space;
};

/// What every thread of one forward call shares. Filled by the caller; thread_main runs on each.
template <class T>
struct ForwardRun {
  StepContext<T> shared;
  Scratch<T> scratch;
  Room room;
  /// Layers [first_layer, layers), and of the last one directions [first_direction, directions).
  std::int64_t first_layer = 0, layers = shared.spec().num_layers;
  std::int64_t first_direction = 0, directions = shared.spec().num_dirs();
  /// Where the states at the borders of chunks are kept; null: nowhere.
  const BorderStates<T>* borders = nullptr;

  // Where layer 0 and the first steps read; x and states are gathered there first when `gather`.
  Grid<T> x;
  Grid<T> h0, c0;  // base null: zeros
  bool gather = false;
  /// The plan of layers that are shifted in time; that of `shared` changes when a caller goes on
  /// alone.
  Plan wave = shared.plan;

  void thread_main(int thread) noexcept;

 private:
  using Member = ForwardMember<T>;

  bool wait(Member& me, Barrier& barrier, int members) noexcept;
  bool run_layers(Member& me) noexcept;
  bool run_shifted(Member& me) noexcept;
  void run_part(Member& me, std::int64_t group, std::int64_t chunk, std::int64_t chunks) noexcept;
  bool run_direction(Member& me, std::int64_t layer, std::int64_t direction) noexcept;
  bool run_steps(Member& me, std::int64_t layer, std::int64_t direction, std::int64_t first,
                 std::int64_t end) noexcept;
  ForwardStep<T> step_call(const Member& me, std::int64_t layer, std::int64_t direction,
                           const Share& vectors) const noexcept;
  std::int64_t chunk_end(const Member& me, std::int64_t step, std::int64_t end,
                         std::int64_t most_rows) const;
  void project(const Member& me, std::int64_t layer, std::int64_t direction, std::int64_t first,
               std::int64_t last, const Share& vectors) noexcept;
  /// Directions of the layers that this run has.
  std::int64_t own_layers() const noexcept {
    return (layers - first_layer - 1) * shared.spec().num_dirs() + directions - first_direction;
  }
  void point(const Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
             ForwardStep<T>& call) noexcept;
  bool step(Member& me, std::int64_t layer, std::int64_t direction, std::int64_t step,
            ForwardStep<T>& call) noexcept;
};

/// Runs `run` on the threads of `lease`.
template <class T>
void run_forward(ForwardRun<T>& run, ThreadLease& lease) {
  lease.run([&run](int thread) { run.thread_main(thread); });
}

extern template struct ForwardRun<float>;
extern template struct ForwardRun<double>;

}  // namespace openrnn::cpu
