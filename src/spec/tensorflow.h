// What TensorFlow fixes where a network has an option.
#pragma once

#include "openrnn/base.h"

namespace openrnn::spec {

/// What LayerNormBasicLSTMCell adds to each variance.
inline double layer_norm_basic_epsilon(DType dtype) {
  return dtype == DType::kFloat16 ? 1e-3 : 1e-12;
}

}  // namespace openrnn::spec
