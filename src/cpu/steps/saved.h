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

/// Whether a layer's steps write `gates` past the caches: with AMX tiles, where `layers` directions
/// of layers save more of them than the caches of the threads keep until backward reads them. A
/// line would be read, changed and written back for nothing; so only lines that are written whole
/// are.
template <class T>
bool streams_gates(const CpuPacked<T>& packed, const ForwardArgs& args, std::int64_t layers,
                   int threads, const Grid<T>& gates) noexcept;

/// From now on gates that can be written past the caches are, however few. Returns what it was. For
/// tests, so that small calls do.
bool assume_streams(bool always) noexcept;

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

extern template bool streams_gates(const CpuPacked<float>&, const ForwardArgs&, std::int64_t, int,
                                   const Grid<float>&) noexcept;
extern template bool streams_gates(const CpuPacked<double>&, const ForwardArgs&, std::int64_t, int,
                                   const Grid<double>&) noexcept;
extern template struct SavedPlaces<float>;
extern template struct SavedPlaces<double>;

}  // namespace openrnn::cpu
