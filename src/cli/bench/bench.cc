// openrnn bench: the recurrent layers against this machine's own peak.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "cli/bench/measure.h"
#include "cli/bench/meters.h"
#include "cli/commands.h"
#include "openrnn/formats.h"
#include "openrnn/graph.h"
#include "openrnn/runtime.h"

namespace openrnn::cli {
namespace {

void print_row(const BenchConfig& config, const Measurement& row) {
  fmt::print("{:<22}  {:<16}  {:>10.3f}  {:>10.3f}  {:>9.1f}", config.name, row.pass,
             row.milliseconds, row.best_milliseconds, row.gflops);
  if (row.peak > 0.0) fmt::print("  {:>9.1f}", row.percent_of_peak());
  if (row.most_bandwidth > 0.0) {
    fmt::print("   its steps read {:.0f} GB/s, {:.0f} % of the {:.0f} that reading alone gets",
               row.bandwidth, 100.0 * row.bandwidth / row.most_bandwidth, row.most_bandwidth);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int run(const BenchFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  const int threads = num_threads();
  const train::ArithmeticChoice choice = choice_of(flags.arithmetic);
  std::vector<BenchConfig> configs;
  for (const BenchConfig& config : bench_configs()) {
    if (config.name.find(flags.only) == std::string::npos) continue;
    configs.push_back(config);
    RnnSpec& spec = configs.back().spec;
    spec.math = choice.math.value_or(spec.math);
    spec.weights_dtype = choice.weights_dtype.value_or(spec.weights_dtype);
  }
  if (configs.empty()) {
    throw ArgumentError("[bench] --only '" + excerpt(flags.only) +
                        "' names no configuration, expected part of one such as 'LSTM L4 U1024 "
                        "B64 T40'");
  }
  const RnnSpec& first = configs.front().spec;
  const Device& device = default_device();
  const Engine& engine = choose_engine(first, device);
  if (engine.device()) {
    fmt::print("{}, engine {}\n", device.name(), engine.description());
  } else {
    fmt::print(
        "{}, {} threads, engine {}, FMA peak {:.0f} GFLOP/s (measured again with each line)\n",
        processor_name(), threads, engine.description(), fma_peak(threads, 0.2));
  }
  fmt::print("math {}, weights {}: computed as {}\n", to_string(first.math),
             first.weights_dtype == WeightsDType::kNone ? dtype_name(first.dtype)
                                                        : to_string(first.weights_dtype),
             engine.math_kind(first));
  fmt::print("{:<22}  {:<16}  {:>10}  {:>10}  {:>9}  {}\n", "config", "pass", "median ms",
             "best ms", "GFLOP/s", engine.device() ? "" : "% of peak");
  nlohmann::json list = nlohmann::json::array();
  for (const BenchConfig& config : configs) {
    for (const Measurement& row : measure(config, threads, flags.seconds)) {
      print_row(config, row);
      list.push_back({{"config", config.name},
                      {"device", std::string(device.name())},
                      {"pass", row.pass},
                      {"threads", threads},
                      {"math", std::string(to_string(config.spec.math))},
                      {"weights_dtype", std::string(to_string(config.spec.weights_dtype))},
                      {"math_kind", std::string(math_kind(config.spec, device))},
                      {"ms", row.milliseconds},
                      {"gflops", row.gflops}});
      if (row.peak > 0.0) list.back()["percent_of_peak"] = row.percent_of_peak();
    }
  }
  if (!flags.json.empty()) write_file_atomically(flags.json, list.dump(2) + "\n");
  return 0;
}

}  // namespace openrnn::cli
