// What a forward call keeps for backward.
#pragma once

#include <vector>

#include "cpu/pack/packed.h"
#include "cpu/steps/rows.h"

namespace openrnn::cpu {

/// What backward reads of a forward pass, as places in one block of memory.
template <class T>
struct SavedPlaces {
  std::vector<LayerStore<T>> layers;
  Grid<T> x;       // [T][B]
  Grid<T> h0, c0;  // [L*D][B]; base null: zeros

  void carve(Carver& carver, const RnnSpec& spec, const ForwardArgs& args);
  /// Without x and the initial states, which lie elsewhere.
  void carve_layers(Carver& carver, const RnnSpec& spec, const ForwardArgs& args);
};

/// Bytes of `Places` for a call.
template <class Places>
std::int64_t bytes_of(const RnnSpec& spec, const ForwardArgs& args) {
  Carver measure;
  Places().carve(measure, spec, args);
  return static_cast<std::int64_t>(measure.used());
}

/// Owns copies of everything that backward reads; nothing writes into it after the call.
template <class T>
struct CpuSaved final : public SavedForward, public SavedPlaces<T> {
  /// `given` is the caller's call, of which shapes, lengths and keys are kept and pointers are not.
  CpuSaved(std::shared_ptr<const CpuPacked<T>> weights, const ForwardArgs& given);

  const CpuPacked<T>& weights() const noexcept { return *packed; }
  bool dropping() const;

  std::shared_ptr<const CpuPacked<T>> packed;
  ForwardArgs args;
  std::vector<std::int32_t> lengths;

 private:
  Block memory_;
};

extern template struct SavedPlaces<float>;
extern template struct SavedPlaces<double>;
extern template struct CpuSaved<float>;
extern template struct CpuSaved<double>;

}  // namespace openrnn::cpu
