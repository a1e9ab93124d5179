// What a forward call keeps for a backward pass that computes it again, chunk by chunk.
#pragma once

#include "cpu/steps/kept_call.h"

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
struct RecomputedPlaces : public InputPlaces<T> {
  BorderStates<T> borders;

  /// Chunks of recompute_steps(args.recompute, args.max_time) steps.
  void carve(Carver& carver, const RnnSpec& spec, const ForwardArgs& args);
};

/// Owns copies of what a chunk is computed from.
template <class T>
struct CpuRecomputed final : public KeptCall<T, RecomputedPlaces<T>> {
  /// No pointer of `given` is kept. The states that enter chunks are the initial ones until others
  /// are known.
  CpuRecomputed(std::shared_ptr<const CpuPacked<T>> weights, const ForwardArgs& given);

  std::int64_t length(std::int64_t row) const {
    return this->args.sequence_lengths ? this->args.sequence_lengths[row] : this->args.max_time;
  }

 private:
  void fill_borders(const ForwardArgs& given);
};

extern template struct RecomputedPlaces<float>;
extern template struct RecomputedPlaces<double>;
extern template struct CpuRecomputed<float>;
extern template struct CpuRecomputed<double>;

}  // namespace openrnn::cpu
