// The processor as a device: plain memory, and products on the vector units.
#pragma once

#include "openrnn/device.h"

namespace openrnn {

/// The device 'cpu'. Lives as long as the program; thread-safe.
OPENRNN_API const Device& cpu_device();

}  // namespace openrnn
