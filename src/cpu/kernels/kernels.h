// The kernel surface: plain functions on pointers and sizes, one table an instruction set.
//
// Letters: L lanes of a vector, k the index of a sum, U units of a layer, G gates of a unit. A
// value is a number that enters a sum; an element is 4 bytes (8 of double) of packed weights of one
// column, which hold one value or several smaller ones.
//
// | what            | shape                                                        |
// |-----------------|--------------------------------------------------------------|
// | gate panels     | [U / L][k][G][L]: width G, the gates of L units side by side |
// | column panels   | [columns / (4 L)][k][4][L]: width 4                          |
// | column form, c  | rows of [columns]                                            |
// | panel form, pre | [panel][rows][vectors of the panel][L]                       |
// | bias            | [vectors][L]; hn_bias of gru: [U rounded up to L]            |
// | rows of h, c    | [U]; of gates and gate gradients: [G][U], of gru [4][U]      |
#pragma once

#include <stdint.h>

#include "cpu/kernels/cell/options.h"
#include "cpu/tuning/tuning.h"
#include "engine/sum_order.h"

namespace openrnn::cpu {

/// What values are stored as: as they are computed, or in 16 bits.
enum Storage { kStorageWide, kStorageHalf, kStorageBf16, kStorages };

/// Where a product keeps its rows in the form that its arithmetic reads, for `rows` rows at once:
/// staging_head() bytes with a pointer or a mark for each, then the rows. See staging_bytes().
struct Staging {
  void* memory;
  int64_t rows;
};

/// Packed weights, [panel][k][width][lanes], where has_tiles() [panel][width][k][lanes], and the
/// vectors of them that a call works on. With `width` gates a panel holds one vector of units, else
/// `width` vectors of columns.
template <class T>
struct Panels {
  const T* b;
  int64_t k;        // elements
  int64_t b_step;   // elements from one k to the next; tiles have lanes
  int64_t b_panel;  // elements from one panel to the next
  int64_t width;
  int64_t first, last;  // vectors; multiples of width when panels are gates
  bool reverse;         // from last to first: alternating panel order finds more in the cache
  int64_t inner;        // values of a row that enter the product
  Staging staging;
};

/// out[row, column] = sum over k of a[row][k] b[k, column], in the order of sum_order.h.
template <class T>
struct ProductCall {
  Panels<T> w;
  const T* const* a;  // [rows]
  int64_t a_step;     // elements from one k to the next; not 1: packed by BigKernels::pack_a
  int64_t rows;
  const T* bias;    // column form only: [vectors][lanes], joins at the end; null: none
  bool accumulate;  // column form only: begins with the old c
  T* const* c;      // column form: [rows], each [columns]
  int64_t columns;
  T* pre;  // panel form when c is null: [vectors of this call in groups][rows][group][lanes]
  const int64_t* spans;  // elements of each; null: whole spans and what is left
};

/// The input's side of the pre-activations under skip_input: x, in panel form.
template <class T>
struct SkipCall {
  int64_t gates, first, last;  // as in Panels
  int64_t width;
  const T* const* x;
  int64_t rows;
  T* pre;
  int64_t units;
};

/// One step of one direction for some rows and units. Row pointers point at unit 0. With `options`,
/// `gates` keep the sums that enter the activations; those of a reset before the product are
/// [r, z, n, r h'], and its second part has the state before the step in `c_prev`.
template <class T>
struct ForwardStep {
  Panels<T> w;
  const T* const* h_prev;
  const T* const* operand;  // the rows that enter the product; null: h_prev
  const T* const* mask;     // of the candidate, with options; null: none
  int64_t rows;
  const T* pre;  // panel form of pre_rows rows, of which this step's begin at pre_first
  int64_t pre_rows, pre_first;
  const T* bias;     // [vectors][lanes]
  const T* hn_bias;  // gru: [units padded to lanes]
  const T* const* c_prev;
  T* const* c;
  T* const* h;
  T* const* gates;  // null: nothing is saved
  // Whether gates go past the caches. Then vectors are cache lines, and every row of `gates` and
  // every gate in it begin at one.
  bool streams;
  int64_t units;
  bool clip;
  Storage round_c, round_h;  // rounded to what they will be stored as
  T clip_low, clip_high;
  const CellOptions<T>* options;  // null: one of cuDNN's steps
  FinishCell<T> finish;           // with options

  const T* const* entering() const { return operand ? operand : h_prev; }
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
  const T* const* mask;  // with options: of the candidate, or of what enters n's product
  T* const* dc;
  T* const* da;
  int64_t units;
  bool clip;
  T clip_low, clip_high;
  const CellOptions<T>* options;
  FinishGradient<T> finish;
  // What a step with options will read and write, to prefetch: gates of a row, gate gradients of a
  // row, and the state before, null for none.
  int64_t saved_gates, gradient_gates;
  const T* const* before;
};

enum { kModeRelu, kModeTanh, kModeLstm, kModeGru, kModes };
enum { kMathExp, kMathTanh, kMathSigmoid, kMathFunctions };

/// How a product multiplies. All sum in float32 (int8: exactly, then scaled).
enum Arithmetic {
  kExact,       // one fused multiply-add a value
  kStoredHalf,  // weights of float16, two an element: even k in the first half of a vector
  kStoredBf16,  // weights of bfloat16, two an element: even k in the low half of each word
  kInt8,        // four an element; below a panel's last one its scales, then 128 * their sums
  kDot,         // bfloat16 on both sides; each pair of k its odd one first
  kAmx,         // bfloat16 on both sides; 16 pairs give an even and an odd sum, which are added
  kBf16x3,      // both sides high + low bfloat16; 16 pairs of high elements, then 16 of low ones
  kArithmetics
};

/// Weights with fewer bits: how many elements hold `inner` values, and how many more a panel has.
struct ElementCount {
  int64_t elements, extra;
};
inline ElementCount count_elements(Arithmetic arithmetic, int64_t inner) {
  switch (arithmetic) {
    case kExact:
      return {inner, 0};
    case kInt8:
      return {(inner + 3) / 4, 2};
    case kAmx:
      return {(inner + kAmxBlock - 1) / kAmxBlock * (kAmxBlock / 2), 0};
    case kBf16x3:
      return {(inner + kAmxBlock - 1) / kAmxBlock * kAmxBlock, 0};
    default:
      return {(inner + 1) / 2, 0};
  }
}

/// Values of a row that are multiplied by so many packed elements, for the arithmetics of training.
inline int64_t values_in(Arithmetic arithmetic, int64_t elements) {
  return arithmetic == kDot || arithmetic == kAmx ? 2 * elements : elements;
}

/// Whether packed weights are tiles, a vector after the other.
constexpr bool has_tiles(Arithmetic arithmetic) {
  return arithmetic == kAmx || arithmetic == kBf16x3;
}

/// Elements of a block and of a span. Sums of bytes are exact, and AMX tiles add one block of 32
/// values after another.
struct SumLengths {
  int64_t block, span;
};
constexpr SumLengths sum_lengths(Arithmetic arithmetic) {
  switch (arithmetic) {
    case kStoredHalf:
    case kStoredBf16:  // two values an element: the sums of kExact
      return {kSumBlock / 2, kSumSpan / 2};
    case kInt8:
    case kAmx:
    case kBf16x3:
      return {INT64_MAX, INT64_MAX};
    default:
      return {kSumBlock, kSumSpan};
  }
}

constexpr int64_t round_to_line(int64_t bytes) { return (bytes + 63) / 64 * 64; }
/// Bytes in front of `rows` staged rows: a pointer for each, or a mark of one byte.
constexpr int64_t staging_head(int64_t rows) { return round_to_line(rows * 8); }
/// Bytes of a staged row of `inner` values of at most 4 bytes. Two more cache lines have what fills
/// up the last element, or AMX's last block (at most 128 bytes for 32 values), and a scale of int8.
constexpr int64_t staging_row(int64_t inner) { return round_to_line(inner * 4) + 128; }
/// Bytes of staging for `rows` rows of at most `inner` values.
constexpr int64_t staging_bytes(Arithmetic arithmetic, int64_t rows, int64_t inner) {
  return arithmetic == kExact ? 0 : staging_head(rows) + rows * staging_row(inner);
}

/// Both sides of a product over many rows k, of which columns [first, first + count) are packed:
/// [k][width], zero beyond `count`. Tiles of AMX: [width / L][k][L], of `elements` in all.
template <class T>
struct PackRows {
  const T* const* rows;
  int64_t k, first, count, width, elements;
  T* out;
};

/// The product of weight gradients, whose k are rows of both sides. Null: as kExact's.
template <class T>
struct BigKernels {
  Arithmetic form;                     // what count_elements says of a column of k rows
  int64_t span;                        // values, at most twice kSumSpan
  void (*pack_a)(const PackRows<T>&);  // 16 columns at a time
  void (*pack_b)(const PackRows<T>&);
  void (*product)(const ProductCall<T>&);
};

template <class T>
struct Kernels {
  int64_t lanes;
  void (*product)(const ProductCall<T>&);
  void (*skip)(const SkipCall<T>&);
  void (*forward[kModes])(const ForwardStep<T>&);
  void (*backward[kModes])(const BackwardStep<T>&);
  void (*forward_cell[kCells])(const ForwardStep<T>&);  // with options
  void (*backward_cell)(const BackwardStep<T>&);
  CellFinishers<T> cells;
  /// With layer normalization, after the products of a step, by kCellLstm and kCellGru.
  void (*norm_forward[kCells])(const ForwardStep<T>&, const NormForward<T>&);
  void (*norm_backward[kCells])(const BackwardStep<T>&, const NormBackward<T>&);
  void (*math[kMathFunctions])(const T* x, T* y, int64_t size);
  /// y += x for the first form, y *= x for the second.
  void (*add)(const T* x, T* y, int64_t size);
  void (*multiply)(const T* x, T* y, int64_t size);
  void (*zone_out)(const ZoneRow<T>&);
  void (*zone_out_gradient)(const ZoneGradient<T>&);
  void (*add_wide)(const T* x, double* y, int64_t size);                      // y += x in float64
  void (*add_product_wide)(const T* a, const T* b, double* y, int64_t size);  // y += a b in float64
  double (*dot_wide)(const T* a, const T* b, int64_t size);                   // a . b in float64
  BigKernels<T> big;
};

/// What stands in for a table's own kernels where the processor has instructions for them: the same
/// bits, mostly faster.
struct DotTable {
  Kernels<float> dot, int8;
};

/// The arithmetics of AMX tiles, which come beside those of AVX-512.
struct TileTable {
  Kernels<float> amx, bf16x3;
};

/// Between float and the 16 bits that it is stored as.
struct StorageKernels {
  void (*widen)(const uint16_t* bits, float* out, int64_t size);
  void (*narrow)(const float* x, uint16_t* bits, int64_t size);
  void (*round)(float* x, int64_t size);  // as narrow and widen
};

struct KernelTable {
  const char* name;
  Kernels<float> f32[kAmx];  // of the arithmetics before kAmx
  Kernels<double> f64;
  const DotTable* (*dots)();          // null: none
  const TileTable* (*tiles)();        // null: none
  StorageKernels storage[kStorages];  // null of kStorageWide
};

/// Null where this build's processor family has no such instructions.
const KernelTable* scalar_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* neon_kernels();
/// 'amx' and 'amx_emulated': avx512_kernels() with tiles.
const KernelTable* avx512_amx_kernels();
const KernelTable* avx512_amx_emulated_kernels();

const DotTable* avx512_dot_kernels();
const TileTable* amx_kernels();
/// The same functions, bit for bit, on any processor with AVX-512.
const TileTable* amx_emulated_kernels();

}  // namespace openrnn::cpu
