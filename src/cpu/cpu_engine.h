// The SIMD engine on the processor's vector units.
#pragma once

#include "openrnn/engine.h"

namespace openrnn {

/// The engine 'cpu'. Lives as long as the program; stateless and thread-safe.
const Engine& cpu_engine();

}  // namespace openrnn
