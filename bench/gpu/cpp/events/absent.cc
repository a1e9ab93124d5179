// A build without the GPU engine, in which no device but the cpu can be had.
#include "gpu/cpp/clock.h"

namespace openrnn::gpu_bench {
namespace {

[[noreturn]] void refuse(const Device& device) {
  throw EngineError("[gpu_bench] device is '" + std::string(device.name()) +
                    "', which this build has no events of");
}

}  // namespace

std::vector<double> times_between_events(const Device& device, long, const std::function<void()>&) {
  refuse(device);
}

std::function<double()> watch_work(const Device& device) { refuse(device); }

std::vector<std::string> chosen_algorithms() { return {}; }

}  // namespace openrnn::gpu_bench
