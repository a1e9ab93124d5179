// Results as arrays of a dtype.
#pragma once

#include <vector>

#include "openrnn/base.h"

namespace openrnn::reference {

/// Each rounded once; null: not wanted.
inline void write(DType dtype, const std::vector<double>& values, void* to) {
  if (to == nullptr) return;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (dtype == DType::kFloat16) {
      static_cast<Half*>(to)[k] = to_half(values[k]);
    } else if (dtype == DType::kBfloat16) {
      static_cast<Bfloat16*>(to)[k] = to_bfloat16(values[k]);
    } else if (dtype == DType::kFloat32) {
      static_cast<float*>(to)[k] = static_cast<float>(values[k]);
    } else {
      static_cast<double*>(to)[k] = values[k];
    }
  }
}

}  // namespace openrnn::reference
