// openrnn bench: the recurrent layers against this machine's own peak.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "cli/bench/cells.h"
#include "cli/bench/company.h"
#include "cli/bench/gradients.h"
#include "cli/bench/load_files.h"
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
  if (row.tiles > 0.0) fmt::print("  {:>10.1f}", row.percent_of_tiles());
  if (row.most_bandwidth > 0.0) {
    fmt::print("   its steps read {:.0f} GB/s, {:.0f} % of the {:.0f} that reading alone gets",
               row.bandwidth, 100.0 * row.bandwidth / row.most_bandwidth, row.most_bandwidth);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

std::vector<BenchConfig> chosen_configs(const BenchFlags& flags) {
  const train::ArithmeticChoice choice = choice_of(flags.arithmetic);
  std::vector<BenchConfig> configs;
  for (const BenchConfig& config : bench_configs()) {
    if (config.name.find(flags.only) == std::string::npos) continue;
    configs.push_back(config);
    RnnSpec& spec = configs.back().spec;
    spec.compute.math = choice.math.value_or(spec.compute.math);
    spec.compute.weights_dtype = choice.weights_dtype.value_or(spec.compute.weights_dtype);
  }
  if (configs.empty()) {
    throw ArgumentError("[bench] --only '" + excerpt(flags.only) +
                        "' names no configuration, expected part of one such as 'LSTM L4 U1024 "
                        "B64 T40'");
  }
  return configs;
}

nlohmann::json described(const BenchConfig& config, const Device& device, const std::string& pass,
                         int threads) {
  return {{"config", config.name},
          {"device", std::string(device.name())},
          {"pass", pass},
          {"threads", threads},
          {"math", std::string(to_string(config.spec.compute.math))},
          {"weights_dtype", std::string(to_string(config.spec.compute.weights_dtype))},
          {"math_kind", std::string(math_kind(config.spec, device))}};
}

nlohmann::json against_peak(const std::vector<BenchConfig>& configs, const Device& device,
                            int threads, double seconds) {
  const bool on_processor = choose_engine(configs.front().spec, device).device() == nullptr;
  fmt::print("{:<22}  {:<16}  {:>10}  {:>10}  {:>9}  {}\n", "config", "pass", "median ms",
             "best ms", "GFLOP/s", on_processor ? "% of peak  % of tiles" : "");
  nlohmann::json list = nlohmann::json::array();
  for (const BenchConfig& config : configs) {
    for (const Measurement& row : measure(config, threads, seconds)) {
      print_row(config, row);
      list.push_back(described(config, device, row.pass, threads));
      list.back()["ms"] = row.milliseconds;
      list.back()["gflops"] = row.gflops;
      if (row.peak > 0.0) list.back()["percent_of_peak"] = row.percent_of_peak();
      if (row.tiles > 0.0) list.back()["percent_of_tiles"] = row.percent_of_tiles();
    }
  }
  return list;
}

nlohmann::json in_company(const std::vector<BenchConfig>& configs, const Device& device,
                          int threads, double seconds) {
  const BusyProcess busy(threads);
  fmt::print("a busy process has CPU {}; medians of calls next to it\n", busy.processor());
  fmt::print("{:<22}  {:<16}  {:>12}  {:>12}  {:>6}  {:>5}\n", "config", "pass", "1 thread, ms",
             fmt::format("{} threads", threads), "ratio", "calls");
  nlohmann::json list = nlohmann::json::array();
  for (const BenchConfig& config : configs) {
    for (const InCompany& row : measure_in_company(config, threads, seconds)) {
      fmt::print("{:<22}  {:<16}  {:>12.3f}  {:>12.3f}  {:>6.2f}  {:>5}\n", config.name, row.pass,
                 row.one_thread, row.threads, row.ratio(), row.calls);
      std::fflush(stdout);
      list.push_back(described(config, device, row.pass, threads));
      list.back()["ms"] = row.threads;
      list.back()["ms_one_thread"] = row.one_thread;
      list.back()["ratio"] = row.ratio();
    }
  }
  return list;
}

nlohmann::json cells(const BenchFlags& flags) {
  fmt::print("time of a cell with an option to cuDNN's cell of the same size, medians\n");
  fmt::print("{:<16}  {:<48}  {:>7}  {:>8}\n", "config", "option", "forward", "training");
  nlohmann::json list = nlohmann::json::array();
  measure_cells(flags.only, [&](const CellCost& cost) {
    fmt::print("{:<16}  {:<48}  {:>7.2f}  {:>8.2f}\n", cost.config, cost.option, cost.forward_ratio,
               cost.training_ratio);
    std::fflush(stdout);
    list.push_back({{"config", cost.config},
                    {"option", cost.option},
                    {"forward_ratio", cost.forward_ratio},
                    {"training_ratio", cost.training_ratio}});
  });
  if (list.empty()) {
    throw ArgumentError("[bench] --only '" + excerpt(flags.only) +
                        "' names no cell, expected part of one such as 'GRU U128 B16 T50 "
                        "reset_after false'");
  }
  return list;
}

nlohmann::json gradients(const BenchFlags& flags) {
  fmt::print("time of a call to that of forward and backward, medians\n");
  fmt::print("{:<32}  {:<24}  {:>5}  {:>9}  {:>9}  {}\n", "config", "call", "ratio", "ms",
             "plain ms", "kept, MB");
  nlohmann::json list = nlohmann::json::array();
  measure_gradients(flags.only, [&](const GradientCost& cost) {
    fmt::print("{:<32}  {:<24}  {:>5.2f}  {:>9.1f}  {:>9.1f}", cost.config, cost.call, cost.ratio,
               cost.milliseconds, cost.plain_milliseconds);
    list.push_back({{"config", cost.config},
                    {"call", cost.call},
                    {"ratio", cost.ratio},
                    {"ms", cost.milliseconds},
                    {"plain_ms", cost.plain_milliseconds}});
    if (cost.kept_mb && cost.plain_kept_mb) {
      fmt::print("  {:.1f} instead of {:.1f}", *cost.kept_mb, *cost.plain_kept_mb);
      list.back()["kept_mb"] = *cost.kept_mb;
      list.back()["plain_kept_mb"] = *cost.plain_kept_mb;
    }
    fmt::print("\n");
    std::fflush(stdout);
  });
  if (list.empty()) {
    throw ArgumentError("[bench] --only '" + excerpt(flags.only) +
                        "' names no line, expected part of one such as 'GRU U256 B32 T512 "
                        "save=inputs'");
  }
  return list;
}

nlohmann::json loading(const BenchFlags& flags) {
  const ReadyCost ready = measure_ready(flags.load);
  fmt::print("an OpenRNN file of 1 MB is ready to run after {:.2f} ms, the next times {:.2f} ms\n",
             ready.first_ms, ready.best_ms);
  fmt::print("{:<12}  {:>8}  {:>9}  {:>9}  {:>10}  {:>14}\n", "kind", "MB", "load ms", "read ms",
             "rate ratio", "peak / file");
  nlohmann::json list = nlohmann::json::array();
  list.push_back({{"kind", "ready"}, {"first_ms", ready.first_ms}, {"ms", ready.best_ms}});
  measure_loading(flags.load, flags.megabytes, flags.only, [&](const LoadCost& cost) {
    fmt::print("{:<12}  {:>8.0f}  {:>9.1f}  {:>9.1f}  {:>10.2f}  {:>14.2f}\n", cost.kind,
               cost.file_bytes / 1e6, 1e3 * cost.load_seconds, 1e3 * cost.read_seconds,
               cost.rate_ratio(), cost.memory_ratio());
    std::fflush(stdout);
    list.push_back({{"kind", cost.kind},
                    {"bytes", cost.file_bytes},
                    {"ms", 1e3 * cost.load_seconds},
                    {"read_ms", 1e3 * cost.read_seconds},
                    {"rate_ratio", cost.rate_ratio()},
                    {"memory_ratio", cost.memory_ratio()}});
  });
  if (list.size() == 1) {
    throw ArgumentError("[bench] --only '" + excerpt(flags.only) +
                        "' names no kind of file, expected part of one such as 'safetensors'");
  }
  return list;
}

}  // namespace

int run(const BenchFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  const int threads = num_threads();
  if (flags.cells || flags.gradients || !flags.load.empty()) {
    const nlohmann::json list = flags.cells       ? cells(flags)
                                : flags.gradients ? gradients(flags)
                                                  : loading(flags);
    if (!flags.json.empty()) write_file_atomically(flags.json, list.dump(2) + "\n");
    return 0;
  }
  const std::vector<BenchConfig> configs = chosen_configs(flags);
  const RnnSpec& first = configs.front().spec;
  const Device& device = default_device();
  const Engine& engine = choose_engine(first, device);
  if (flags.company && (threads < 2 || engine.device())) {
    throw ArgumentError(
        "[bench] --company compares threads of the CPU, expected --threads 2 "
        "or more and --device cpu");
  }
  if (engine.device()) {
    fmt::print("{}, engine {}\n", device.name(), engine.description());
  } else {
    fmt::print(
        "{}, {} threads, engine {}, FMA peak {:.0f} GFLOP/s (measured again with each line)\n",
        processor_name(), threads, engine.description(), fma_peak(threads, 0.2));
  }
  fmt::print("math {}, weights {}: computed as {}\n", to_string(first.compute.math),
             first.compute.weights_dtype == WeightsDType::kNone
                 ? dtype_name(first.dtype)
                 : to_string(first.compute.weights_dtype),
             engine.math_kind(first));
  const nlohmann::json list =
      flags.company ? in_company(configs, device, threads, flags.seconds.value_or(10.0))
                    : against_peak(configs, device, threads, flags.seconds.value_or(1.0));
  if (!flags.json.empty()) write_file_atomically(flags.json, list.dump(2) + "\n");
  return 0;
}

}  // namespace openrnn::cli
