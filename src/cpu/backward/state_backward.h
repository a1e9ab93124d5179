// The backward part of a step between cells: dh where the cell's kernel does not compute it (behind
// a projection, a mask of the state, zoneout), and what zoneout hands to the step before.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// One direction of one layer, one member's units.
template <class T>
class StateBackward {
 public:
  StateBackward(const BackwardRun<T>& run, const BackwardMember<T>& me,
                const PackedLayer<T>& weights, std::int64_t layer, std::int64_t direction)
      : run_(run),
        shared_(run.shared),
        me_(me),
        own_(run.scratch_of(layer)),
        space_(me.space),
        matrix_(weights.r_back),
        layer_(layer),
        d_(direction),
        i_d_(static_cast<std::size_t>(direction)) {}

  /// Draws the masks of the state, of this member's share of the rows. A barrier follows.
  void draw_masks() noexcept;
  /// Before the cell's part of a step, of which the first `older` of `count` rows have a later one:
  /// dh of its h, into the place of `a` for a cell that multiplies it by Wp, else into that of
  /// carry; the masks of the candidate; zoneout of c.
  void before_cell(BackwardStep<T>& call, std::int64_t step, std::int64_t count,
                   std::int64_t older) noexcept;
  /// Adds what zoneout kept of dh and dc to those that the cell has computed.
  void after_cell(const BackwardStep<T>& call, std::int64_t count) noexcept;
  /// The gradient of the initial state takes the place of carry; a row of length zero has it there.
  void initial_state() noexcept;

 private:
  void output_gradient(std::int64_t step, std::int64_t count, std::int64_t older) noexcept;
  void finish_row(std::int64_t i, std::int64_t step, bool has_later, const Range& units) noexcept;
  void clip(std::int64_t step, std::int64_t count, const Range& units) noexcept;
  void mask_candidate(BackwardStep<T>& call, std::int64_t step, std::int64_t count) noexcept;
  void split_cells(const BackwardStep<T>& call, std::int64_t step, std::int64_t count) noexcept;
  Range units_of(const Panels<T>& w, std::int64_t all) const {
    return cpu::units_of(w, 1, shared_.packed.kernels().lanes, all);
  }
  typename StepContext<T>::MaskPlace mask_of(MaskOf of, std::int64_t step, std::int64_t b) const {
    return shared_.mask_of_step(of, pseudo(), shared_.time_of(d_, step, b), b);
  }
  Panels<T> recurrent() const;
  std::int64_t pseudo() const { return layer_ * shared_.spec().num_dirs() + d_; }
  std::int64_t width() const { return shared_.spec().hidden_size(); }
  // Whether a step hands something to the one before it beside the product.
  bool carries() const { return shared_.packed.keeps_h() || shared_.spec().zoneout > 0.0; }

  const BackwardRun<T>& run_;
  const StepContext<T>& shared_;
  const BackwardMember<T>& me_;
  const LayerScratch<T>& own_;
  const BackwardSpace<T>& space_;
  const PackedMatrix<T>& matrix_;
  std::int64_t layer_, d_;
  std::size_t i_d_;
};

extern template class StateBackward<float>;
extern template class StateBackward<double>;

}  // namespace openrnn::cpu
