// Cells with options against cuDNN's cell of the same size.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace openrnn::cli {

struct CellCost {
  std::string config;  // "LSTM U128 B16 T50"
  std::string option;  // "gate_clip [-3, 3]"; "none" is the cell against itself
  /// Medians of rounds in which both are timed one after the other.
  double forward_ratio = 0.0, training_ratio = 0.0;
};

/// Of the options that cost time, at each size, in the order in which they are measured; `only` is
/// part of "CONFIG OPTION".
std::vector<CellCost> measure_cells(const std::string& only,
                                    const std::function<void(const CellCost&)>& report);

}  // namespace openrnn::cli
