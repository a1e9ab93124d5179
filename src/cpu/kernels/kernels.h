// The kernel surface: plain functions on pointers and sizes, one table an instruction set.
#pragma once

#include <stdint.h>

namespace openrnn::cpu {

/// Packed weights, [panel][k][width][lanes], and the vectors of them that a call works on. With
/// `width` gates a panel holds one vector of units, else `width` vectors of columns.
template <class T>
struct Panels {
  const T* b;
  int64_t k;
  int64_t b_step;   // elements from one k to the next
  int64_t b_panel;  // elements from one panel to the next
  int64_t width;
  int64_t first, last;  // vectors; multiples of width when panels are gates
  bool reverse;         // walk from last to first
};

/// out[row, column] = start + sum over k of a[row][k] b[k, column].
template <class T>
struct ProductCall {
  Panels<T> w;
  const T* const* a;  // [rows]
  int64_t a_step;     // elements from one k to the next, mostly 1
  int64_t rows;
  const T* start;   // [vectors][lanes], the same for every row; null: 0, or old c if accumulate
  bool accumulate;  // column form only
  T* const* c;      // column form: [rows], each [columns]
  int64_t columns;
  T* pre;  // panel form when c is null: [vectors of this call in groups][rows][group][lanes]
};

/// What the pre-activations start from under skip_input: bias + x, in panel form.
template <class T>
struct SkipCall {
  int64_t gates, first, last;  // as in Panels
  int64_t width;
  const T* const* x;
  int64_t rows;
  const T* bias;
  T* pre;
  int64_t units;
};

/// One step of one direction for some rows and units. Row pointers point at unit 0.
template <class T>
struct ForwardStep {
  Panels<T> w;
  const T* const* h_prev;
  int64_t rows;
  const T* pre;  // panel form of pre_rows rows, of which this step's begin at pre_first
  int64_t pre_rows, pre_first;
  const T* hn_bias;  // gru: [units padded to lanes]
  const T* const* c_prev;
  T* const* c;
  T* const* h;
  T* const* gates;  // null: nothing is saved
  int64_t units;
  bool clip, round_c, round_h;  // rounded to float16 and back
  T clip_low, clip_high;
};

/// One step of backward: dh = carry + a b (+ dy), then the gate gradients of those units.
template <class T>
struct BackwardStep {
  Panels<T> w;  // w.k = 0: no product yet, dh starts at carry
  const T** a;  // gate gradients of the step after
  int64_t rows;
  T* const* carry;  // in when start_at_carry; gru writes dh * z
  bool start_at_carry;
  const T* const* dy;  // null: none
  const T* const* gates;
  const T* const* c;
  const T* const* c_prev;
  const T* const* h_prev;
  T* const* dc;
  T* const* da;
  int64_t units;
  bool clip;
  T clip_low, clip_high;
};

enum { kModeRelu, kModeTanh, kModeLstm, kModeGru, kModes };
enum { kMathExp, kMathTanh, kMathSigmoid, kMathFunctions };

template <class T>
struct Kernels {
  int64_t lanes;
  void (*product)(const ProductCall<T>&);
  void (*skip)(const SkipCall<T>&);
  void (*forward[kModes])(const ForwardStep<T>&);
  void (*backward[kModes])(const BackwardStep<T>&);
  void (*math[kMathFunctions])(const T* x, T* y, int64_t size);
  /// y += x for the first form, y *= x for the second.
  void (*add)(const T* x, T* y, int64_t size);
  void (*multiply)(const T* x, T* y, int64_t size);
};

struct KernelTable {
  const char* name;
  Kernels<float> f32;
  Kernels<double> f64;
  void (*widen)(const uint16_t* half, float* out, int64_t size);
  void (*narrow)(const float* x, uint16_t* half, int64_t size);
  void (*round_half)(float* x, int64_t size);
};

/// Null where this build's processor family has no such instructions.
const KernelTable* scalar_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* neon_kernels();

}  // namespace openrnn::cpu
