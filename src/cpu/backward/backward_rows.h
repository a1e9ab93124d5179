// The caller's arrays around a backward pass, and the gradient of a layer's input. A member does
// its share of the rows, or of the columns of the input.
#pragma once

#include "cpu/backward/backward_run.h"

namespace openrnn::cpu {

template <class T>
class BackwardRows {
 public:
  BackwardRows(const BackwardRun<T>& run, const BackwardMember<T>& me)
      : run_(run), shared_(run.shared), me_(me) {}

  /// Stored in 16 bits: copies dy to where the run reads it.
  void widen_output_gradient() noexcept;
  /// carry and dc begin with the gradients of the final states.
  void seed_states(std::int64_t layer, std::int64_t d) noexcept;
  /// Writes the gradients of the initial states.
  void store_states(std::int64_t layer, std::int64_t d) noexcept;
  /// dx of a layer at times [first, end): the products of the forward direction first, then those
  /// of the backward one.
  void input_gradient(std::int64_t layer, std::int64_t first, std::int64_t end) noexcept;
  /// The gradient of a dropped output at these times passes the same mask.
  void drop(std::int64_t layer, std::int64_t first, std::int64_t end) noexcept;
  /// Writes dx where the run has not, and its padding.
  void finish_input_gradient() noexcept;

 private:
  void skip_gradient(std::int64_t first, std::int64_t end) noexcept;

  const BackwardRun<T>& run_;
  const StepContext<T>& shared_;
  const BackwardMember<T>& me_;
};

extern template class BackwardRows<float>;
extern template class BackwardRows<double>;

}  // namespace openrnn::cpu
