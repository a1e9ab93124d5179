// What masks and zoneout add to a step: the rows that enter its product, the mask of its candidate,
// and what of the state before is kept.
#pragma once

#include "cpu/forward/forward_run.h"

namespace openrnn::cpu {

/// Those of one direction of one layer, of one member's units.
template <class T>
class ForwardMasks {
 public:
  ForwardMasks(const ForwardRun<T>& run, const ForwardMember<T>& me, std::int64_t layer,
               std::int64_t direction)
      : run_(run),
        shared_(run.shared),
        me_(me),
        store_(run.scratch.layers[layer]),
        layer_(layer),
        d_(direction) {}

  /// Makes the mask of the state and the masked initial states, of this member's share of the rows;
  /// false when there is none. A barrier follows.
  bool begin() const noexcept;
  /// Points the call at the rows that enter its product and at the masks of its candidate.
  void before(std::int64_t step, ForwardStep<T>& call) const noexcept;
  /// Zoneout of the cells that the call has left, to which space.c then points.
  void finish_cells(std::int64_t step, const ForwardStep<T>& call) const noexcept;
  /// Zoneout of h, and what of it enters the next step.
  void finish_state(std::int64_t step, std::int64_t rows, const Range& units) const noexcept;
  /// The units that a member with these panels computes.
  Range units_of(const ForwardStep<T>& call) const noexcept;

 private:
  std::int64_t pseudo() const { return layer_ * shared_.spec().num_dirs() + d_; }
  typename StepContext<T>::MaskPlace mask_of(MaskOf of, std::int64_t t, std::int64_t b) const {
    return shared_.mask_of_step(of, pseudo(), t, b);
  }
  T* state_mask(std::int64_t b) const {
    const std::int64_t width = shared_.spec().hidden_size();
    return run_.scratch.state_mask + (d_ * shared_.args.batch + b) * width;
  }

  const ForwardRun<T>& run_;
  const StepContext<T>& shared_;
  const ForwardMember<T>& me_;
  const LayerStore<T>& store_;
  std::int64_t layer_, d_;
};

extern template class ForwardMasks<float>;
extern template class ForwardMasks<double>;

}  // namespace openrnn::cpu
