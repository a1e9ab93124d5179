// The gradient of h between the steps of one direction where the cell's kernel does not multiply it
// by itself, and what masks and zoneout add to that of a step.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

/// That of one direction of one layer, of one member's units.
template <class T>
class StateGradient {
 public:
  StateGradient(const BackwardRun<T>& run, const BackwardMember<T>& me, std::int64_t layer,
                std::int64_t direction)
      : run_(run),
        shared_(run.shared),
        me_(me),
        space_(me.space),
        layer_(layer),
        d_(direction),
        i_d_(static_cast<std::size_t>(direction)) {}

  /// Makes the masks of the state, of this member's share of the rows. A barrier follows.
  void begin() noexcept;
  /// Before the cell's part of a step, of which the first `older` of `count` rows have a later one:
  /// dh of its h, into the place of `a` for a cell that multiplies it by Wp, else into that of
  /// carry; the masks of the candidate; zoneout of c.
  void before_cell(BackwardStep<T>& call, std::int64_t step, std::int64_t count,
                   std::int64_t older) noexcept;
  /// Adds what zoneout passes on to what the cell does.
  void after_cell(const BackwardStep<T>& call, std::int64_t count) noexcept;
  /// The gradient of the initial state takes the place of carry; a row of length zero has it there.
  void first() noexcept;

 private:
  using Units = typename StepContext<T>::Units;

  void pass(std::int64_t step, std::int64_t count, std::int64_t older) noexcept;
  void finish_row(std::int64_t i, std::int64_t step, bool has_later, const Units& units) noexcept;
  void clip(std::int64_t step, std::int64_t count, const Units& units) noexcept;
  void mask_candidate(BackwardStep<T>& call, std::int64_t step, std::int64_t count) noexcept;
  void split_cells(const BackwardStep<T>& call, std::int64_t step, std::int64_t count) noexcept;
  // What a member with these panels computes.
  Units units_of(const Panels<T>& w, std::int64_t all) const {
    const std::int64_t lanes = shared_.packed.kernels().lanes;
    return {std::min(all, w.first * lanes), std::min(all, w.last * lanes)};
  }
  Panels<T> recurrent() const;
  std::int64_t pseudo() const { return layer_ * shared_.spec().num_dirs() + d_; }
  std::int64_t width() const { return shared_.spec().hidden_size(); }
  // Whether a step hands something to the one before it beside the product.
  bool carries() const { return shared_.packed.keeps_h() || shared_.spec().zoneout > 0.0; }

  const BackwardRun<T>& run_;
  const StepContext<T>& shared_;
  const BackwardMember<T>& me_;
  const BackwardSpace<T>& space_;
  std::int64_t layer_, d_;
  std::size_t i_d_;
};

extern template class StateGradient<float>;
extern template class StateGradient<double>;

}  // namespace openrnn::cpu
