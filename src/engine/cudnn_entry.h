// The way in to the GPU engine. A build has one of two rooms behind it: `cudnn`, or `cudnn_absent`,
// which says what is missing; callers cannot tell which they were linked with.
#pragma once

#include <string>

#include "openrnn/engine.h"

namespace openrnn {

/// What the GPU engine lacks here and how to get it, in one line; empty when it can run.
std::string cudnn_missing();

/// Throws: EngineError with the line of cudnn_missing when it cannot run.
const Engine& cudnn_engine();

}  // namespace openrnn
