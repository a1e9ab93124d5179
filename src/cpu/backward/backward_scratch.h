// Memory of one backward call; nothing of it outlives the call.
#pragma once

#include "cpu/gemm/product.h"
#include "cpu/steps/saved.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {

/// Row pointers and small memory of one thread.
template <class T>
struct BackwardSpace {
  const T **a, **dy, **gates, **c, **c_prev, **h_prev;  // rows of a step
  T **carry, **dc, **da;
  T **sums_of, **dm;  // with layer normalization: gradients of sums, of what the step put out
  const T** norms;
  const T **rows_a, **rows_b, **rows_h;  // every valid row of the batch
  std::int64_t* groups;                  // how many of each group of steps
  T **rows_c, **rows_r;                  // rows of the results of a large product
  const T** masks;
  T *mask, *sums;  // mask: max(D * O, U)
  T* row_params;   // the gradient of one row, if their norms are wanted
  ProductScratch<T> product;
  Staging staging;
};

/// What the steps of a layer need, and leave for the products after them; layers take turns with
/// one, unless they are shifted in time.
template <class T>
struct LayerScratch {
  std::array<Grid<T>, 2> da, dh_proj;  // [T][B], of each direction
  std::array<Grid<T>, 2> dc, carry;    // [B], of each direction
  // With layer normalization: gradients of normalized sums [T][B], and of h~ [B].
  std::array<Grid<T>, 2> dsums, dm;
  // [B], of each direction: masks, dh before the cell's part of a step, and what zoneout keeps.
  std::array<Grid<T>, 2> state_mask, candidate_mask, dh_split, dc_kept;
  std::array<T*, 2> transposed;  // weights that do not fit their gradient, of each direction

  void carve_direction(Carver& carver, const CpuPacked<T>& packed, const ForwardArgs& call,
                       std::size_t d);
  /// What the steps of one direction leave for the products after them, of `time` steps.
  void carve_steps(Carver& carver, const CpuPacked<T>& packed, std::int64_t time,
                   std::int64_t batch, std::size_t d);
  /// The same, from step `t` on of a longer one.
  void take_steps(const LayerScratch& whole, std::size_t d, std::int64_t t) {
    da[d] = whole.da[d].after(t);
    dh_proj[d] = whole.dh_proj[d].after(t);
    dsums[d] = whole.dsums[d].after(t);
  }
};

/// Bytes of all layers of a unidirectional network that are shifted in time.
template <class T>
std::size_t shifted_bytes(const CpuPacked<T>& packed, const ForwardArgs& call);

/// Whether the layers of a backward pass can be shifted in time: one needs the later steps of that
/// above alone.
template <class T>
bool can_shift_backward(const CpuPacked<T>& packed, const ForwardArgs& call) {
  const RnnSpec& spec = packed.spec();
  return spec.num_layers > 1 && spec.num_dirs() == 1 &&
         shifted_bytes(packed, call) <= static_cast<std::size_t>(kShiftedBytes);
}

/// What decides the memory of a backward pass over `call`, which may be a chunk.
template <class T>
struct BackwardNeeds {
  const CpuPacked<T>& packed;
  const ForwardArgs& call;
  int threads = 1;
  bool between = false;      // gradients between layers
  bool wide_params = false;  // of 16 bits: those of parameters
  T* lent = nullptr;         // memory of those that is idle until they are written
  bool row_norms = false;
  std::int64_t wide_rows = 0;  // of 16 bits: rows whose gradients of parameters are wanted
  bool shifts = false;         // layers may be shifted in time
};

template <class T>
struct BackwardScratch : LayerScratch<T> {
  std::int32_t* order;
  LayerScratch<T>* layers;  // of each layer, where they may be shifted in time; else null
  Grid<T> dx;               // [T][B][D*O], of one layer at a time; the caller's if it serves
  T *dy_wide, *dx_wide, *params_wide, *rows_wide;  // of 16 bits only
  BackwardSpace<T>* threads;

  static BackwardScratch carve(Carver& carver, const BackwardNeeds<T>& needs);
  static BackwardScratch carve(Carver& carver, const CpuSaved<T>& saved, const Plan& plan,
                               const BackwardArgs& args);

 private:
  void carve_layers(Carver& carver, const CpuPacked<T>& packed, const ForwardArgs& call);
};

/// The caller's dx is written last; until then it can hold the gradients between layers if its rows
/// are as wide as theirs and lie in the same order.
template <class T>
bool dx_serves(const CpuSaved<T>& saved, const BackwardArgs& args) {
  const RnnSpec& s = saved.packed->spec();
  return args.dx && saved.args.time_major && !is_16_bit_float(s.dtype) &&
         s.input_size == s.output_size();
}

extern template struct LayerScratch<float>;
extern template struct LayerScratch<double>;
extern template std::size_t shifted_bytes<float>(const CpuPacked<float>&, const ForwardArgs&);
extern template std::size_t shifted_bytes<double>(const CpuPacked<double>&, const ForwardArgs&);
extern template struct BackwardScratch<float>;
extern template struct BackwardScratch<double>;

}  // namespace openrnn::cpu
