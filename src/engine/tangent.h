// Which options of a network tangents know.
#pragma once

#include "openrnn/engine_tangent.h"

namespace openrnn {

/// Whether the spec sets no option that is newer than the tangents of the engines. A newer one
/// leaves a call without a second derivative: an error, never a wrong number.
bool tangents_know(const RnnSpec& spec);

}  // namespace openrnn
