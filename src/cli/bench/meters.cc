#include "cli/bench/meters.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "cli/bench/loops.h"

namespace openrnn::cli {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

double rate_of(int threads, double seconds, const std::function<double(int)>& body) {
  std::atomic<int> ready{0};
  std::vector<double> rates(static_cast<std::size_t>(threads));
  const auto work = [&](int thread) {
    (void)body(thread);  // warms up caches and clocks
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();
    double& best = rates[static_cast<std::size_t>(thread)];
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (auto start = Clock::now(); start < end;) {
      const double done = body(thread);
      const auto now = Clock::now();
      best = std::max(best, done / std::chrono::duration<double>(now - start).count());
      start = now;
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  double sum = 0.0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double fma_peak(int threads, double seconds) {
  constexpr long kIterations = 20000;
  return rate_of(threads, seconds, [](int) { return fma_loop(kIterations); }) * 1e-9;
}

double read_bandwidth(int threads, std::size_t bytes, double seconds) {
  constexpr std::size_t kUnit = 1024;  // floats: a multiple of what an iteration reads
  const std::size_t floats =
      (bytes / sizeof(float) / static_cast<std::size_t>(threads) / kUnit + 1) * kUnit;
  std::vector<std::vector<float>> parts(static_cast<std::size_t>(threads),
                                        std::vector<float>(floats, 1.0F));
  // Small parts are read several times per iteration, so that reading the clock costs nothing.
  const std::size_t again = 1 + (std::size_t{1} << 18) / floats;
  const auto body = [&](int thread) {
    const std::vector<float>& part = parts[static_cast<std::size_t>(thread)];
    for (std::size_t i = 0; i < again; ++i) read_loop(part.data(), part.size());
    return static_cast<double>(again * part.size() * sizeof(float));
  };
  return rate_of(threads, seconds, body) * 1e-9;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "an unknown processor";
}

}  // namespace openrnn::cli
