#include "gpu/cpp/clock.h"

#include <chrono>

namespace openrnn::gpu_bench {

std::vector<double> times_of(const Device& device, long count, const std::function<void()>& call) {
  if (device.engine() != nullptr) return times_between_events(device, count, call);
  std::vector<double> times;
  for (long i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count());
  }
  return times;
}

}  // namespace openrnn::gpu_bench
