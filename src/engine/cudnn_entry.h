// Entry points of the GPU engine. A build has one of two rooms: `cudnn`, or `cudnn_absent`, which
// says what is missing; callers cannot tell which they were linked with.
#pragma once

#include <string>

#include "openrnn/engine.h"

namespace openrnn {

/// What the GPU engine lacks here and how to get it, in one line; empty when it can run. `ordinal`
/// is the GPU's number among those that the driver shows.
std::string cudnn_missing(int ordinal = 0);

/// GPUs that the driver shows; 0 when anything is missing.
int gpu_count();

/// 'gpu:N'. Its engine() is the cuDNN engine over that GPU's memory.
/// Throws: EngineError with the line of cudnn_missing when it cannot run.
const Device& gpu_device(int ordinal);

/// The engine of that device; nothing is made on the GPU until it computes. Throws: as above.
const Engine& gpu_engine(int ordinal);

/// What runs there, as text: "cuDNN 9.19.0, CUDA driver 13.0, NVIDIA H100"; makes nothing on the
/// GPU. Throws: as above.
std::string gpu_description(int ordinal);

}  // namespace openrnn
