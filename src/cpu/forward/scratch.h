// Memory of one forward call that nothing keeps.
#pragma once

#include "cpu/pack/packed.h"
#include "cpu/steps/rows.h"

namespace openrnn::cpu {

/// What one thread needs for its steps.
template <class T>
struct ThreadSpace {
  T* pre;  // pre-activations of a chunk of steps
  std::int64_t pre_size;
  const T** a;  // rows that enter the projection
  std::int64_t a_rows;
  const T **h_prev, **c_prev;
  T **c, **h, **gates;
  T **products, **inputs, **norms;  // with layer normalization
  const T **operand, **masks;
  T* mask;  // max(D * O, U)
  Staging staging;
};

/// All of it, carved from one block.
template <class T>
struct Scratch {
  std::int32_t* order;
  T* x;  // of 16 bits: the widened input
  T *h0, *c0;
  T* below;           // outputs of the layers below the last, each of `out_size`
  std::int64_t outs;  // how many of these: layers that are not shifted in time take turns with two
  std::int64_t out_size;
  T* last;  // of 16 bits: output of the last layer
  T *c, *h_tilde, *c_now;
  T* operand;                      // [D][2][B][O]: masked states of a step and the one after it
  T *state_mask, *candidate_mask;  // [D][B][O], [D][B][U]
  T* gates;                        // a step's, between its parts
  // With layer normalization, of a step: R h of all units, and W x where threads share a row.
  T *products, *inputs;
  LayerStore<T>* layers;
  T* pre;
  const T** pointers;
  T* masks;
  Staging staging;  // of the first thread; the others' lie behind it

  /// `saving` leaves out what a saved call keeps elsewhere.
  static Scratch carve(Carver& carver, const CpuPacked<T>& packed, const Room& room, bool saving);
  /// `room.threads` threads share what was carved for as many or more.
  ThreadSpace<T> of_thread(int thread, const CpuPacked<T>& packed, const Room& room) const;
};

extern template struct Scratch<float>;
extern template struct Scratch<double>;

}  // namespace openrnn::cpu
