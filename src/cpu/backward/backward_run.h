// The backward pass on the packed weights.
#pragma once

#include "cpu/gemm/product.h"
#include "cpu/pack/transposed.h"
#include "cpu/steps/saved.h"
#include "cpu/threading/thread_lease.h"

namespace openrnn::cpu {

/// Row pointers and small memory of one thread.
template <class T>
struct BackwardSpace {
  const T **a, **dy, **gates, **c, **c_prev, **h_prev;
  T **carry, **dc, **da;
  const T **rows_a, **rows_b, **rows_h;  // every valid row of the batch
  std::int64_t* groups;                  // how many of each group of steps
  T **rows_c, **rows_r;
  T *mask, *sums;
  ProductScratch<T> product;
  Staging staging;
};

/// Memory of one backward call; nothing of it outlives the call.
template <class T>
struct BackwardScratch {
  std::int32_t* order;
  std::array<Grid<T>, 2> da, dh_proj;  // [T][B], a direction each
  std::array<Grid<T>, 2> dc, carry;    // [B], a direction each
  Grid<T> dx;                          // [T][B][D*O], layers take turns; the caller's if it serves
  std::array<T*, 2> transposed;        // of layers whose gradient has no room, a direction each
  T *dy_wide, *dx_wide, *params_wide;  // float16 only
  BackwardSpace<T>* threads;

  static BackwardScratch carve(Carver& carver, const CpuSaved<T>& saved, int threads,
                               const BackwardArgs& args);
};

/// What every thread of one backward call shares.
template <class T>
struct BackwardRun {
  const CpuSaved<T>& saved;
  const BackwardArgs& args;
  Plan plan;
  Rows rows;
  BackwardScratch<T> scratch;
  Grid<T> dy;  // base null: zeros
  Grid<T> dx;  // base null: not wanted
  T* dparams;  // null: not wanted
  Barrier* row_barriers;
  Barrier* step_barriers;
  Barrier* all_barrier;

  void thread_main(int thread) noexcept;

 private:
  struct Member;
  void widen_output_gradient(const Member& me) noexcept;
  void run_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  void seed_states(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  void store_states(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  BackwardStep<T> step_call(const Member& me, std::int64_t layer, std::int64_t d) const;
  void point(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
             std::int64_t count) noexcept;
  void step(BackwardStep<T> call, std::int64_t count, std::int64_t older) noexcept;
  bool multiply_in_blocks(Panels<T>& w, const T** a, std::int64_t count, bool accumulate,
                          T* const* c, std::int64_t columns) noexcept;
  void project_step(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
                    std::int64_t count, std::int64_t older) noexcept;
  void first_state(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  void input_gradient(const Member& me, std::int64_t layer) noexcept;
  void skip_gradient(const Member& me) noexcept;
  void drop(const Member& me, std::int64_t layer) noexcept;
  void finish_input_gradient(const Member& me) noexcept;

  void transpose_layer(std::int64_t layer, int thread, bool input) const noexcept;
  PackedLayer<T> weights(std::int64_t layer, std::int64_t direction) const noexcept;
  std::int64_t active(const Member& me, std::int64_t step) const;
  std::int64_t time_of(std::int64_t d, std::int64_t step, std::int64_t b) const {
    return d == 0 ? step : rows.length(b) - 1 - step;
  }
  // Where the recurrent side of a row of gate gradients begins.
  std::int64_t recurrent_side() const {
    const RnnSpec& spec = saved.packed->spec();
    return spec.mode == RnnMode::kGru ? spec.num_units : 0;
  }
  Grid<T> output_gradient(std::int64_t layer) const {
    return layer + 1 == saved.packed->spec().num_layers ? dy : scratch.dx;
  }
};

/// One thread's share of the weight gradients of a layer, in the order of sum_order.h.
template <class T>
void weight_gradients(const BackwardRun<T>& run, std::int64_t layer, int thread) noexcept;

extern template void weight_gradients<float>(const BackwardRun<float>&, std::int64_t, int) noexcept;
extern template void weight_gradients<double>(const BackwardRun<double>&, std::int64_t,
                                              int) noexcept;

}  // namespace openrnn::cpu
