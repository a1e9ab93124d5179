// Times of calls on a device: by its events, or by the clock where work is done when a call returns.
#pragma once

#include <functional>
#include <vector>

#include "openrnn/engine.h"

namespace openrnn::gpu_bench {

/// Nanoseconds of each of `count` calls. On a GPU between events around each call, which are
/// enqueued one after the other without waiting, so that a call shorter than its launch shows the
/// launch, as in use.
std::vector<double> times_of(const Device& device, long count, const std::function<void()>& call);

}  // namespace openrnn::gpu_bench
