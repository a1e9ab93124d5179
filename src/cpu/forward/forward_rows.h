// The caller's arrays around a forward pass: inputs before it, outputs after a step and a layer.
#pragma once

#include "cpu/forward/forward_run.h"

namespace openrnn::cpu {

/// Points every layer of a run that saves nothing at its scratch memory.
template <class T>
void place_layers(ForwardRun<T>& run);

/// One member's share of the rows.
template <class T>
class ForwardRows {
 public:
  ForwardRows(const ForwardRun<T>& run, const ForwardMember<T>& me)
      : run_(run), shared_(run.shared), me_(me) {}

  /// Copies x and the initial states to where the run reads them.
  void gather_inputs() noexcept;
  /// Writes the cells of a step that the caller asked for, of the units that this member computed:
  /// the next step may overwrite them before others come.
  void keep_cells(std::int64_t layer, std::int64_t direction, std::int64_t step,
                  const ForwardStep<T>& call) noexcept;
  /// The same of the cells at the borders of chunks.
  void keep_border_cells(std::int64_t layer, std::int64_t direction, std::int64_t step,
                         const ForwardStep<T>& call) noexcept;
  /// Writes the final states of a layer, the outputs of it that the caller asked for, and the
  /// padding of its cells.
  void finish_layer(std::int64_t layer) noexcept;
  /// Makes the input of the next layer at times [first, end) from the output of `layer`.
  void drop_outputs(std::int64_t layer, std::int64_t first, std::int64_t end) noexcept;
  /// Writes y where the last layer has not, and its padding.
  void finish_output() noexcept;

 private:
  void finish_states(std::int64_t layer) noexcept;
  void finish_kept(std::int64_t layer) noexcept;
  void keep_border_outputs(std::int64_t layer) noexcept;
  std::int64_t first_row() const { return shared_.packed.normalizes() ? me_.place.panel : 0; }
  std::int64_t row_stride() const {
    return shared_.packed.normalizes() ? shared_.plan.panel_threads : 1;
  }
  Range own_units(const ForwardStep<T>& call) const;

  const ForwardRun<T>& run_;
  const StepContext<T>& shared_;
  const ForwardMember<T>& me_;
};

extern template class ForwardRows<float>;
extern template class ForwardRows<double>;
extern template void place_layers<float>(ForwardRun<float>&);
extern template void place_layers<double>(ForwardRun<double>&);

}  // namespace openrnn::cpu
