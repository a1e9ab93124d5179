// NaN and infinity among weights.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

struct NonFinite {
  std::int64_t nan = 0, infinite = 0;
};
/// Of floating values. At the speed of memory: what is finite is looked at once.
NonFinite count_non_finite(const ConstArrayView& values);

/// "the network 'a' has 3 NaN and 1 infinite of 84 values in params" for parameters, states and
/// slots that are not all finite.
std::vector<std::string> non_finite_notes(const MappedNetwork& network);

}  // namespace openrnn::mapping
