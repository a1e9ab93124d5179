// How fast this processor multiplies, measured where it decides how threads divide a call.
#pragma once

#include "cpu/kernels/kernels.h"

namespace openrnn::cpu {

/// Seconds that a packed weight takes one thread.
struct Rates {
  double tile;     // for each of many rows
  double row;      // for one row, the weights in L2
  double far_row;  // the same, the weights beyond L2
};

/// Packed weights, and a row of their `inner` values to multiply them by.
template <class T>
struct RowAndPanels {
  Panels<T> panels;
  const T* row;
};

/// Those of these kernels, of which `arithmetic` is theirs. Measured when they are first asked for,
/// in below 1 ms; far_row, else 0, with the first weights `far` that L2 does not hold. No lock:
/// threads that come at once measure both. Throws: std::bad_alloc.
template <class T>
Rates rates_of(const Kernels<T>& kernels, Arithmetic arithmetic, const RowAndPanels<T>* far);

/// From now on the result of rates_of(), null: the measured ones; returns what it was. So that
/// tests divide their calls alike, wherever they run.
const Rates* assume_rates(const Rates* rates) noexcept;

}  // namespace openrnn::cpu
