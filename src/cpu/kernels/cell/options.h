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

/// The options of one direction of one layer.
template <class T>
struct CellOptions {
  CellFunction<T> gate, candidate, output;
  const T* peephole[4];  // [gate] -> [units padded to lanes]; null: the gate sees no cell
  bool coupled;          // lstm: f = 1 - i
  bool clip;             // of what enters gates and candidate
  T low, high;
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
struct GradPlace {
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
using FinishGradient = void (*)(const BackwardStep<T>&, const GradPlace&, const T* dh);

/// The finishers. A GRU whose reset gate applies before the product has two a step: kCellReset does
/// gates r and z and writes r h', kCellCandidate multiplies that by R of n and does the rest.
/// Backward they come in the opposite order.
enum { kCellPlain, kCellLstm, kCellGru, kCellReset, kCellCandidate, kCells };

/// Zoneout of some units of a row: those whose mask is 0 keep the value before.
template <class T>
struct ZoneRow {
  const T* mask;  // null: rate * before + rest * now
  T rate, rest;
  const T *before, *now;
  T* out;  // may be `now`
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
