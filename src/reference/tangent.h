// Calls and their gradients in dual numbers, in double.
#pragma once

#include "openrnn/engine_tangent.h"

namespace openrnn::reference {

void tangent(const TangentArgs& args);

}  // namespace openrnn::reference
