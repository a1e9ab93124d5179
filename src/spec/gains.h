// Counts of layer normalization's parameters.
#pragma once

#include "openrnn/spec.h"

namespace openrnn::spec {

/// How many gains a gate has: of W x and R h, of their sum, or none.
inline std::int64_t gains_per_gate(const RnnSpec& spec) {
  return spec.normalizes_products() ? 2 : spec.normalizes() ? 1 : 0;
}

}  // namespace openrnn::spec
