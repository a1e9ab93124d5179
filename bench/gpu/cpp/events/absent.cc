// A build without the GPU engine, in which no device but the cpu can be had.
#include "gpu/cpp/clock.h"

namespace openrnn::gpu_bench {

std::vector<double> times_between_events(const Device& device, long, const std::function<void()>&) {
  throw EngineError("[times_of] device is '" + std::string(device.name()) +
                    "', which this build has no events of");
}

}  // namespace openrnn::gpu_bench
