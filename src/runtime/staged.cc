#include "runtime/staged.h"

#include "engine/cudnn_entry.h"

namespace openrnn {

// TODO(engine helper): stage
const Engine& staged_gpu_engine() { return *gpu_device(0).engine(); }

}  // namespace openrnn
