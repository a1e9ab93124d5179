// The GPU engine for arrays in the host's memory: copies in, runs, copies out.
#pragma once

#include "openrnn/engine.h"

namespace openrnn {

/// Named 'cudnn', over gpu:0. Throws: EngineError when it cannot run.
const Engine& staged_gpu_engine();

}  // namespace openrnn
