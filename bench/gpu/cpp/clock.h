// What a device says of itself: times of calls, its work, the algorithms that were chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "openrnn/device.h"

namespace openrnn::gpu_bench {

/// Nanoseconds of each of `count` calls: by the clock on the cpu, whose work is done when a call
/// returns, and by events on a GPU.
std::vector<double> times_of(const Device& device, long count, const std::function<void()>& call);

/// The time between events around each call. Calls are enqueued one after the other without
/// waiting, so that one that is shorter than its launch shows the launch, as it would in use.
std::vector<double> times_between_events(const Device& device, long count,
                                         const std::function<void()>& call);

/// Watches a GPU from now on. The result, called once, ends that and gives the milliseconds in
/// which the GPU had work of this process.
std::function<double()> watch_work(const Device& device);

/// The algorithms that the GPU engine has chosen so far, a line each.
std::vector<std::string> chosen_algorithms();

}  // namespace openrnn::gpu_bench
