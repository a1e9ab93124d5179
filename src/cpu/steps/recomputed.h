// What a forward call keeps for a backward pass that computes it again, chunk by chunk.
#pragma once

#include <vector>

#include "cpu/pack/packed.h"
#include "cpu/steps/rows.h"

namespace openrnn::cpu {

/// The states that enter each chunk of `steps` steps: those of the forward direction before its
/// first step, those of the backward one after its last.
template <class T>
struct BorderStates {
  std::int64_t steps = 0, chunks = 0;
  std::int64_t layers = 0, batch = 0;  // L*D, B
  std::int64_t h_width = 0, c_width = 0;
  T *h = nullptr, *c = nullptr;  // [chunks][L*D][B]

  /// The chunk that the state after the step at time `t` enters; -1: that is inside one, or at the
  /// end.
  std::int64_t entered_after(std::int64_t direction, std::int64_t t) const {
    if (direction == 1) return t % steps == 0 ? t / steps - 1 : -1;
    const std::int64_t next = t + 1;
    return next % steps == 0 && next / steps < chunks ? next / steps : -1;
  }
  Grid<T> h_of(std::int64_t chunk) const { return of(h, chunk, h_width); }
  /// Without a base where there are no cells.
  Grid<T> c_of(std::int64_t chunk) const { return of(c, chunk, c_width); }

 private:
  Grid<T> of(T* base, std::int64_t chunk, std::int64_t width) const {
    if (width == 0) return {};
    return {base + chunk * layers * batch * width, batch * width, width};
  }
};

/// x and the states at the borders, as places in one block of memory.
template <class T>
struct RecomputedPlaces {
  Grid<T> x;       // [T][B]
  Grid<T> h0, c0;  // [L*D][B]; base null: zeros
  BorderStates<T> borders;

  /// Chunks of recompute_steps(args.recompute, args.max_time) steps.
  void carve(Carver& carver, const RnnSpec& spec, const ForwardArgs& args);
};

/// Owns copies of what a chunk is computed from; nothing writes into it after the call.
template <class T>
struct CpuRecomputed final : public SavedForward, public RecomputedPlaces<T> {
  /// `given` is the caller's call, of which shapes, lengths and keys are kept and pointers are not.
  /// The states that enter chunks are the initial ones until others are known.
  CpuRecomputed(std::shared_ptr<const CpuPacked<T>> weights, const ForwardArgs& given);

  std::int64_t length(std::int64_t row) const {
    return args.sequence_lengths ? args.sequence_lengths[row] : args.max_time;
  }

  std::shared_ptr<const CpuPacked<T>> packed;
  ForwardArgs args;
  std::vector<std::int32_t> lengths;

 private:
  void fill_borders(const ForwardArgs& given);

  Block memory_;
};

extern template struct RecomputedPlaces<float>;
extern template struct RecomputedPlaces<double>;
extern template struct CpuRecomputed<float>;
extern template struct CpuRecomputed<double>;

}  // namespace openrnn::cpu
