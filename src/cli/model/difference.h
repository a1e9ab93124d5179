// How far two networks are apart.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::cli {

struct Difference {
  /// The largest of outputs and final states.
  double largest = 0.0;
  std::int64_t values = 0;
};

/// On random input of a few steps and sequences, from the initial states if the network has some.
/// Networks of equal sizes. Throws: as PackedModel.
Difference difference_of(const MappedNetwork& a, const MappedNetwork& b);

}  // namespace openrnn::cli
