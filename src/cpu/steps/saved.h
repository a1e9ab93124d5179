// What a forward call keeps for backward.
#pragma once

#include "cpu/steps/kept_call.h"

namespace openrnn::cpu {

/// What backward reads of a forward pass, as places in one block of memory.
template <class T>
struct SavedPlaces : public InputPlaces<T> {
  std::vector<LayerStore<T>> layers;

  void carve(Carver& carver, const RnnSpec& spec, const ForwardArgs& args);
  /// One layer, of the directions from `first` on; its `input` is its output.
  static LayerStore<T> carve_layer(Carver& carver, const RnnSpec& spec, const ForwardArgs& args,
                                   std::int64_t first = 0);
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

/// Owns copies of everything that backward reads.
template <class T>
struct CpuSaved final : public KeptCall<T, SavedPlaces<T>> {
  using KeptCall<T, SavedPlaces<T>>::KeptCall;
};

extern template struct SavedPlaces<float>;
extern template struct SavedPlaces<double>;

}  // namespace openrnn::cpu
