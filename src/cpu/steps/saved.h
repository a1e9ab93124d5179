// What a forward call keeps for backward.
#pragma once

#include <vector>

#include "cpu/pack/packed.h"
#include "cpu/steps/rows.h"

namespace openrnn::cpu {

/// Owns copies of everything that backward reads; nothing writes into it after the call.
template <class T>
struct CpuSaved final : public SavedForward {
  /// `given` is the caller's call, of which shapes, lengths and keys are kept and pointers are not.
  CpuSaved(std::shared_ptr<const CpuPacked<T>> weights, const ForwardArgs& given);

  const CpuPacked<T>& weights() const noexcept { return *packed; }
  bool dropping() const;

  std::shared_ptr<const CpuPacked<T>> packed;
  ForwardArgs args;
  std::vector<std::int32_t> lengths;
  std::vector<LayerStore<T>> layers;
  Grid<T> x;       // [T][B]
  Grid<T> h0, c0;  // [L*D][B]; base null: zeros

 private:
  void carve(Carver& carver);
  Block memory_;
};

extern template struct CpuSaved<float>;
extern template struct CpuSaved<double>;

}  // namespace openrnn::cpu
