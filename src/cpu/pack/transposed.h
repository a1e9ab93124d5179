// The weights as backward reads them, transposed from forward's panels layer by layer, so that no
// second copy of all of them is kept.
#pragma once

#include "cpu/pack/packed.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

/// Elements of the panels of one direction of a layer that backward reads. r, r_n and proj are read
/// by the same steps; w, after them, takes their place, or lies behind them where it is read by
/// turns with them.
template <class T>
std::int64_t transposed_size(const PackedLayer<T>& layer, bool by_turns = false) {
  const std::int64_t steps = layer.r_back.size() + layer.r_n_back.size() + layer.proj_back.size();
  return by_turns ? steps + layer.w_back.size() : std::max(steps, layer.w_back.size());
}

/// Where the gradient of these weights will be written lies idle until then. Null when it is too
/// small (its columns are not padded) or `dparams` is null, and for few rows: then every step reads
/// all of r, and memory of our own has larger pages.
template <class T>
T* transposed_in_gradient(const CpuPacked<T>& packed, std::int64_t layer, std::int64_t direction,
                          std::int64_t batch, T* dparams);

/// A copy of `layer` whose forms for backward lie in `memory`.
template <class T>
PackedLayer<T> with_transposed(const PackedLayer<T>& layer, T* memory, bool by_turns = false);

/// One member's share of the panels of r_back, r_n_back and proj_back, or of w_back.
template <class T>
void transpose_recurrent(const RnnSpec& spec, const PackedLayer<T>& layer, int member, int members);
template <class T>
void transpose_input(const RnnSpec& spec, const PackedLayer<T>& layer, int member, int members);

}  // namespace openrnn::cpu
