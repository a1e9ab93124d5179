#include "cli/bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "cli/bench/bare_tiles.h"
#include "cli/bench/meters.h"
#include "cli/bench/passes.h"

namespace openrnn::cli {
namespace {

constexpr double kPeakSeconds = 0.01;
constexpr std::size_t kFewest = 5;

struct Sizes {
  std::int64_t layers, units, batch, time;
};

BenchConfig make_config(RnnMode mode, const Sizes& sizes) {
  BenchConfig config;
  config.name = fmt::format("{} L{} U{} B{} T{}", mode == RnnMode::kLstm ? "LSTM" : "GRU",
                            sizes.layers, sizes.units, sizes.batch, sizes.time);
  config.spec.mode = mode;
  config.spec.num_layers = sizes.layers;
  config.spec.num_units = config.spec.input_size = sizes.units;
  config.batch = sizes.batch;
  config.time = sizes.time;
  return config;
}

double bytes_of_weight(const RnnSpec& spec) {
  if (spec.compute.weights_dtype == WeightsDType::kInt8) return 1.0;
  return spec.compute.weights_dtype != WeightsDType::kNone || spec.compute.math == Math::kBf16
             ? 2.0
             : 4.0;
}

bool is_plain_float32(const RnnSpec& spec) {
  return spec.dtype == DType::kFloat32 && spec.compute.math == Math::kFloat32 &&
         spec.compute.weights_dtype == WeightsDType::kNone;
}

/// Median time of the work and median peak of the machine, measured alternately.
Measurement time_of(const std::function<void()>& work, int threads, double seconds,
                    bool on_processor) {
  std::vector<double> times, peaks;
  work();  // allocates, starts the thread pool
  for (double spent = 0.0; peaks.size() < kFewest || spent < seconds;) {
    // Short work is repeated between two measurements of the peak, or its caches would always be
    // cold.
    double burst = 0.0;
    while (burst < kPeakSeconds) {
      times.push_back(seconds_of(work));
      burst += times.back();
    }
    peaks.push_back(on_processor ? fma_peak(threads, kPeakSeconds) : 0.0);
    spent += burst + kPeakSeconds;
  }
  Measurement result;
  result.milliseconds = median(times) * 1e3;
  result.best_milliseconds = *std::min_element(times.begin(), times.end()) * 1e3;
  result.peak = median(peaks);
  return result;
}

/// Read rate of the recurrent weights in the steps, against the bandwidth of the cache. Under
/// skip_input there is no product with the input in that time.
void measure_reading(const BenchConfig& config, int threads, double seconds, Measurement& result) {
  BenchConfig alone = config;
  alone.spec.input_mode = InputMode::kSkipInput;
  Passes passes(alone);
  const double milliseconds =
      time_of(passes.all().front().work, threads, seconds, true).milliseconds;
  const double bytes = config.recurrent_bytes();
  result.bandwidth = bytes * static_cast<double>(config.time) / milliseconds * 1e-6;
  std::vector<double> most;
  for (std::size_t i = 0; i < kFewest; ++i) {
    most.push_back(read_bandwidth(threads, static_cast<std::size_t>(bytes), 5.0 * kPeakSeconds));
  }
  result.most_bandwidth = median(most);
}

}  // namespace

double BenchConfig::flop() const {
  const auto per_step = static_cast<double>(2 * spec.num_gates() * spec.num_units *
                                            (spec.input_size + spec.num_units));
  return per_step * static_cast<double>(spec.num_layers * batch * time);
}

double BenchConfig::recurrent_bytes() const {
  return static_cast<double>(spec.num_layers * spec.num_gates() * spec.num_units * spec.num_units) *
         bytes_of_weight(spec);
}

std::vector<BenchConfig> bench_configs() {
  constexpr Sizes kSizes[] = {
      {1, 64, 1, 100},  {1, 128, 1, 100}, {1, 256, 1, 100}, {1, 512, 1, 50},  {1, 1024, 1, 50},
      {2, 64, 1, 100},  {2, 256, 1, 100}, {4, 64, 1, 100},  {4, 256, 1, 100}, {1, 256, 16, 50},
      {1, 512, 32, 50}, {4, 128, 64, 20}, {4, 512, 64, 30}, {4, 1024, 64, 40}};
  std::vector<BenchConfig> configs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const Sizes& sizes : kSizes) configs.push_back(make_config(mode, sizes));
  }
  return configs;
}

std::vector<Measurement> measure(const BenchConfig& config, int threads, double seconds) {
  Passes passes(config);
  std::optional<BareTiles> tiles;
  if (config.batch > 1 && passes.on_processor() && is_plain_float32(config.spec)) {
    tiles.emplace(config.spec, config.batch, config.time, threads);
  }
  std::vector<double> rates;
  std::vector<Measurement> results;
  for (const Passes::Pass& pass : passes.all()) {
    Measurement one = time_of(pass.work, threads, seconds, passes.on_processor());
    one.pass = pass.name;
    one.gflops = pass.flop / one.milliseconds * 1e-6;
    if (config.batch == 1 && one.pass == "forward" && passes.on_processor()) {
      measure_reading(config, threads, seconds, one);
    }
    results.push_back(one);
    if (tiles) rates.push_back(tiles->rate(kPeakSeconds));
  }
  for (Measurement& result : results) result.tiles = tiles ? median(rates) : 0.0;
  return results;
}

}  // namespace openrnn::cli
