// Limits of threads, where 0 stands for as many as num_threads() says.
#pragma once

#include <algorithm>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn {

/// The stricter one of two limits.
inline int fewer_threads(int a, int b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

/// Throws: ArgumentError for a negative limit.
inline void check_threads(std::string_view call, int max_threads) {
  if (max_threads >= 0) return;
  throw ArgumentError(message("[", call, "] max_threads is ", max_threads, ", expected 0 or more"));
}

}  // namespace openrnn
