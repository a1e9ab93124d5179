// The backward pass on the packed weights.
//
// Letters as in forward_run.h; GG the gate gradients of a unit: G, but 4 for gru, whose rows are
// [n, r, z, n * r], the first three of the input's side, the last three of the recurrent side. With
// a reset before the product they are [n, r, z]: R of r and z multiplies h, R of n multiplies r h.
// With layer normalization of products they are 2 G: the input's side, then the recurrent one.
//
// | what                         | shape                       |
// |------------------------------|-----------------------------|
// | dy, dx of the layers below   | [T][B][D*O]                 |
// | da, gate gradients           | [T][B][GG*U] of a direction |
// | carry, dh of the step before | [B][O] of a direction       |
// | dc                           | [B][U] of a direction       |
#pragma once

#include "cpu/backward/backward_scratch.h"
#include "cpu/pack/transposed.h"
#include "cpu/steps/context.h"
#include "cpu/threading/thread_lease.h"

namespace openrnn::cpu {

template <class T>
struct BackwardMember : StepMember {
  const BackwardSpace<T>& space;
};

/// Gradients of a direction's final and initial states, the caller's or those at a border between
/// chunks; base null: zeros, and not wanted.
template <class T>
struct StateGradientRows {
  UserRows<T> dhn, dcn, dh0, dc0;
};

/// The gradients of rows of the batch, one by one.
template <class T>
struct RowGradients {
  double* norms = nullptr;  // [B], squared; null: not wanted
  T* dparams = nullptr;     // [last - first][parameters], of rows [first, last); null: not wanted
  std::int64_t first = 0, last = 0;
  std::uint16_t* narrow_to = nullptr;  // of 16 bits: where dparams goes in the end
};

/// A part of the gradients of parameters: what it sums over, and where it goes.
template <class T>
struct GradientPart {
  std::int64_t first_row = 0, last_row = 0;  // of the batch
  int share = 0, shares = 1;                 // of the parameters
  T* dparams = nullptr;
  bool accumulate = false;  // begins with what dparams holds
  const BackwardSpace<T>& space;
  /// If not null, the squared norm of the matrices is added to it, and they need not be written.
  double* squares = nullptr;
};

/// What every thread of one backward call shares. Filled by the caller; thread_main runs on each.
template <class T>
struct BackwardRun {
  StepContext<T> shared;
  const SavedPlaces<T>& saved;
  std::array<StateGradientRows<T>, 2> states;  // of each direction
  UserRows<T> user_dy, user_dx;
  BackwardScratch<T> scratch;
  Grid<T> dy;  // base null: zeros
  Grid<T> dx;  // base null: not wanted
  T* dparams;  // null: not wanted
  Barrier* all_barrier;
  /// Where transposed weights may lie until gradients are written: dparams, unless null.
  T* lent = nullptr;
  /// The gradients begin with what dparams holds.
  bool accumulate = false;
  /// Stored in 16 bits: where the gradients of parameters go in the end; null: they stay.
  std::uint16_t* narrow_to = nullptr;
  /// Layers [first, last).
  std::int64_t first_layer = 0, last_layer = shared.spec().num_layers;
  /// Directions [first_direction, directions) go through their steps; of the others the gradients
  /// of gates are there.
  std::int64_t first_direction = 0, directions = shared.spec().num_dirs();
  /// The steps alone: no gradients of inputs and weights.
  bool steps_only = false;
  RowGradients<T> rows = {};
  /// Told of each layer whose gradients are where the caller reads them; null: nobody is.
  const std::function<void(std::int64_t)>* layer_done = nullptr;
  /// The plan of layers that are shifted in time; that of `shared` changes when a caller goes on
  /// alone.
  Plan wave = shared.plan;

  void thread_main(int thread) noexcept;

  /// Weights of a layer with their transposed forms.
  PackedLayer<T> weights(std::int64_t layer, std::int64_t direction) const noexcept;
  /// The gradient of the output of `layer`; base null: zeros.
  Grid<T> output_gradient(std::int64_t layer) const {
    return layer + 1 == shared.spec().num_layers ? dy : scratch.dx;
  }
  /// A layer's own, or that which layers take turns with.
  const LayerScratch<T>& scratch_of(std::int64_t layer) const {
    if (wave.layer_groups > 1) return scratch.layers[layer];
    return scratch;
  }
  /// Where the recurrent side of a row of gate gradients begins.
  std::int64_t recurrent_side() const {
    const RnnSpec& spec = shared.spec();
    if (spec.normalizes()) {
      return spec.normalizes_products() ? spec.num_gates() * spec.num_units : 0;
    }
    return spec.mode == RnnMode::kGru ? spec.num_units : 0;
  }

 private:
  using Member = BackwardMember<T>;

  /// Steps of the longest row.
  std::int64_t longest(const Member& me) const {
    return me.rows ? shared.rows.length(shared.row(me, 0)) : 0;
  }
  /// Those of a group that is shifted in time.
  Range layers_of(std::int64_t group) const {
    const std::int64_t all = shared.spec().num_layers, from_below = wave.layer_groups - 1 - group;
    return {wave.first_layer(all, from_below), wave.first_layer(all, from_below + 1)};
  }

  void run_layer(const Member& me, std::int64_t layer) noexcept;
  void sum_gradients(const Member& me, std::int64_t layer) noexcept;
  void tell_of(const Member& me, std::int64_t layer) noexcept;
  void narrow_params(int thread) const noexcept;
  bool run_shifted(const Member& me) noexcept;
  bool wait_for_wave(const Member& me, int members) noexcept;
  void transpose_group(std::int64_t group) const noexcept;
  void run_part(const Member& me, std::int64_t group, std::int64_t chunk,
                std::int64_t chunks) noexcept;
  void run_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  void begin_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  void run_steps(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t first,
                 std::int64_t end) noexcept;
  void end_direction(const Member& me, std::int64_t layer, std::int64_t d) noexcept;
  BackwardStep<T> step_call(const Member& me, const PackedLayer<T>& own, std::int64_t layer,
                            std::int64_t d) const;
  void point(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
             std::int64_t count) noexcept;
  void step(BackwardStep<T> call, std::int64_t count, std::int64_t older) noexcept;
  void norm_step(const Member& me, std::int64_t layer, std::int64_t d, std::int64_t step,
                 BackwardStep<T> call, std::int64_t count, std::int64_t older) noexcept;
  void reset_step(const Member& me, const PackedMatrix<T>& matrix, const Grid<T>& masks,
                  BackwardStep<T> call, std::int64_t count) noexcept;
  void transpose_layer(std::int64_t layer, int thread, bool input) const noexcept;
};

/// A part of the weight gradients of a layer, in the order of sum_order.h.
template <class T>
void weight_gradients(const BackwardRun<T>& run, const GradientPart<T>& part,
                      std::int64_t layer) noexcept;

/// A part of the gradients of gains, and of all biases, where sums are normalized.
template <class T>
void norm_gradients(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                    std::int64_t direction) noexcept;

/// A part of the gradients of peepholes.
template <class T>
void peephole_gradients(const BackwardRun<T>& run, const GradientPart<T>& part, std::int64_t layer,
                        std::int64_t direction) noexcept;

/// Of a layer, the gradients of one thread's rows of the batch, each as in a call of that row
/// alone, and what they add to the squared norms.
template <class T>
void row_gradients(const BackwardRun<T>& run, std::int64_t layer, int thread) noexcept;

extern template void row_gradients<float>(const BackwardRun<float>&, std::int64_t, int) noexcept;
extern template void row_gradients<double>(const BackwardRun<double>&, std::int64_t, int) noexcept;
extern template void peephole_gradients<float>(const BackwardRun<float>&,
                                               const GradientPart<float>&, std::int64_t,
                                               std::int64_t) noexcept;
extern template void peephole_gradients<double>(const BackwardRun<double>&,
                                                const GradientPart<double>&, std::int64_t,
                                                std::int64_t) noexcept;
extern template void norm_gradients<float>(const BackwardRun<float>&, const GradientPart<float>&,
                                           std::int64_t, std::int64_t) noexcept;
extern template void norm_gradients<double>(const BackwardRun<double>&, const GradientPart<double>&,
                                            std::int64_t, std::int64_t) noexcept;
extern template void weight_gradients<float>(const BackwardRun<float>&, const GradientPart<float>&,
                                             std::int64_t) noexcept;
extern template void weight_gradients<double>(const BackwardRun<double>&,
                                              const GradientPart<double>&, std::int64_t) noexcept;
extern template struct BackwardRun<float>;
extern template struct BackwardRun<double>;

}  // namespace openrnn::cpu
