// What openrnn_gpu_bench can be asked for.
#pragma once

#include "openrnn/device.h"

namespace openrnn::gpu_bench {

/// A worker of the benchmark's protocol; returns the exit status.
int serve(const Device& device);

/// Training on the cpu and `other` in turns, of so many steps; whether the losses agree.
bool across(const Device& other, std::int64_t steps);

/// Trains the demo's kind of network for so many seconds between the lines 'begin' and 'end', then
/// prints what a step took. `reduced`: a small one.
void step(const Device& device, double seconds, bool reduced);

}  // namespace openrnn::gpu_bench
