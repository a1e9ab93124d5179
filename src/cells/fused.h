// Loops of TensorFlow's cells as one call of the engine.
#pragma once

#include "cells/loop.h"

namespace openrnn::cells {

/// What run_cell returns of x [T, B, I] and states with values, computed at once; nothing for cells
/// that are not a network of the engine's, or a device that has not got it.
std::optional<DynamicRnnResult> run_fused(RnnCell& cell, const Tensor& x, const CellState& state,
                                          const LengthValues& lengths);

}  // namespace openrnn::cells
