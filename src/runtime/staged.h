// The GPU engine for arrays in host memory: copies in, runs, copies out.
#pragma once

#include "openrnn/engine.h"

namespace openrnn {

/// Named 'cudnn', over gpu:0; its calls throw EngineError when that cannot run. The copies take
/// longer than a small network does: arrays of a device are for gpu_device(0).engine().
const Engine& staged_gpu_engine();

}  // namespace openrnn
