// Training steps of the demo's kind, for whoever watches the GPU meanwhile.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "gpu/cpp/clock.h"
#include "gpu/cpp/commands.h"
#include "gpu/cpp/text_training.h"

namespace openrnn::gpu_bench {
namespace {

constexpr std::int64_t kWarmSteps = 5;
using Clock = std::chrono::steady_clock;

void mark(const char* word) {
  std::printf("%s\n", word);
  std::fflush(stdout);
}

double quantile(std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

void step(const Device& device, double seconds, bool reduced) {
  TrainingSizes sizes{.layers = 4, .units = 1024, .embedding = 64, .batch = 64, .seq_len = 40};
  if (reduced) sizes = {.layers = 2, .units = 16, .embedding = 4, .batch = 3, .seq_len = 5};
  sizes.steps = std::numeric_limits<std::int32_t>::max();
  const train::Text text = made_text(400000);
  TextTraining training(sizes, text, device);
  training.run_to(kWarmSteps, [](double) {});
  std::vector<double> times;
  const bool watched = device.engine() != nullptr;
  const std::function<double()> worked = watched ? watch_work(device) : nullptr;
  mark("begin");
  const auto begin = Clock::now();
  auto last = begin;
  double loss = 0.0;
  // The loss of the step before is read after each step, so the host keeps the GPU's pace.
  training.run_while([&](double value) {
    loss = value;
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
    return last - begin < std::chrono::duration<double>(seconds);
  });
  mark("end");
  std::sort(times.begin(), times.end());
  std::printf("%zu steps, %.3f ms each (%.3f-%.3f), loss %.3f bits a byte\n", times.size(),
              quantile(times, 0.5), quantile(times, 0.25), quantile(times, 0.75), loss);
  if (!watched) return;
  const double wall = std::chrono::duration<double, std::milli>(last - begin).count();
  std::printf("the GPU had work for %.1f percent of the time\n", 100.0 * worked() / wall);
}

}  // namespace openrnn::gpu_bench
