// What a cell with options computes at a unit, beyond the products: read by the finishers of
// cell_body.h, which a step names.
#pragma once

#include <stdint.h>

namespace openrnn::cpu {

/// In the order of openrnn::CellActivationKind.
enum {
  kFunctionSigmoid,
  kFunctionTanh,
  kFunctionRelu,
  kFunctionAffine,
  kFunctionLeakyRelu,
  kFunctionThresholdedRelu,
  kFunctionScaledTanh,
  kFunctionHardSigmoid,
  kFunctionElu,
  kFunctionSoftsign,
  kFunctionSoftplus
};

template <class T>
struct CellFunction {
  int kind;
  T alpha, beta;  // thresholded_relu: beta is the number above alpha
};

/// Layer normalization: the gates from begins[n] to begins[n + 1] are one group of values.
template <class T>
struct NormOptions {
  int64_t groups;  // 0: none
  int64_t begins[5];
  bool products;  // W x and R h apart; else their sum
  bool normalizes_cell, carries_cell;
  T epsilon;
  const T* gain[2];  // of W x or of sums, and of R h: [blocks of lanes units][gates][lanes]
  const T *cell_gain, *cell_bias;  // [units padded to lanes]
};

/// Where a row that backward reads has its parts: normalized values [gates][units] and 1 /
/// sqrt(variance + epsilon) of each gate, of W x or of sums, then of R h, then of the cell.
struct NormRow {
  int64_t input, recurrent, cell, input_inverse, recurrent_inverse, cell_inverse, size;
};
inline NormRow norm_row(int64_t gates, int64_t units, bool products, bool normalizes_cell) {
  NormRow row{};
  row.recurrent = gates * units;
  row.cell = row.recurrent + (products ? gates * units : 0);
  row.input_inverse = row.cell + (normalizes_cell ? units : 0);
  row.recurrent_inverse = row.input_inverse + gates;
  row.cell_inverse = row.recurrent_inverse + (products ? gates : 0);
  row.size = row.cell_inverse + 1;
  return row;
}

/// Rows first, first + stride, .. of a step whose products are there.
template <class T>
struct NormForward {
  T* const* products;  // [rows], each [blocks][gates][lanes]: R h, and sums take its place
  // W x: [rows], or, where that is null, rows input_row apart; blocks of a row input_step apart.
  const T* const* inputs;
  const T* input;
  int64_t input_row, input_step;
  T* const* saved;  // [rows] of what backward reads; null: not saved
  NormRow place;
  int64_t first, stride;
};

/// The same backward; the step's `da` are the gradients of sums, behind which each row has [units]
/// for those of the normalized cell.
template <class T>
struct NormBackward {
  const T* const* dh;  // [rows] of what the step put out, without dy
  const T* const* saved;
  T* const* out;  // [rows] of gate gradients
  NormRow place;
  int64_t first, stride;
};

/// The options of one direction of one layer.
template <class T>
struct CellOptions {
  CellFunction<T> gate, candidate, output;
  const T* peephole[4];  // [gate] -> [units padded to lanes]; null: the gate sees no cell
  bool coupled;          // lstm: f = 1 - i
  bool clip;             // of what enters gates and candidate
  T low, high;
  NormOptions<T> norm;
};

/// `count` units of one row from `unit` on, and the sums of each.
template <class T>
struct CellPlace {
  int64_t row, unit, count;
  const T* tile;  // [gates][lanes], the recurrent sums
  const T* pre;   // [gates][lanes], the input's
  const T* bias;  // [gates][lanes]
};

/// Units [unit, unit + count) of one row.
struct UnitPlace {
  int64_t row, unit, count;
};

template <class T>
struct ForwardStep;
template <class T>
struct BackwardStep;
/// Finishes the units of a vector, forward.
template <class T>
using FinishCell = void (*)(const ForwardStep<T>&, const CellPlace<T>&);
/// Backward: `dh` are [lanes] gradients of what the step put out.
template <class T>
using FinishGradient = void (*)(const BackwardStep<T>&, const UnitPlace&, const T* dh);

/// The finishers. A GRU whose reset gate applies before the product has two a step: kCellReset does
/// gates r and z and writes r h', kCellCandidate multiplies that by R of n and does the rest.
/// Backward they come in the opposite order. kCellProjectedGru keeps its state where an LSTM has
/// its cell.
enum { kCellPlain, kCellLstm, kCellGru, kCellReset, kCellCandidate, kCellProjectedGru, kCells };

/// Zoneout of some units of a row: those whose mask is 0 keep the value before.
template <class T>
struct ZoneRow {
  const T* mask;  // null: rate * before + rest * now
  T rate, rest;
  const T *before, *now;
  T* out;  // may be `before` or `now`
  int64_t count;
};

/// Its gradient: that of `out` in `d`, which becomes that of `now`.
template <class T>
struct ZoneGradient {
  const T* mask;
  T rate, rest;
  T* d;
  T* before;
  int64_t count;
};

template <class T>
struct CellFinishers {
  FinishCell<T> forward[kCells];
  FinishGradient<T> backward[kCells];
};

}  // namespace openrnn::cpu
