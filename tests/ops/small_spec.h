// The network of many tests: L 2, D 2, U 3, I 4, with dropout.
#pragma once

#include "openrnn/spec.h"

namespace openrnn::testing {

inline RnnSpec small_spec(RnnMode mode) {
  return {.mode = mode,
          .num_layers = 2,
          .num_units = 3,
          .input_size = 4,
          .direction = Direction::kBidirectional,
          .dtype = DType::kFloat64,
          .cell_clip = {},
          .training = {.dropout = 0.5}};
}

}  // namespace openrnn::testing
