#include "cli/bench/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cli/bench/meters.h"
#include "openrnn/graph.h"
#include "openrnn/runtime.h"

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

Array random_array(Shape shape, double scale, std::uint64_t stream) {
  Array array(DType::kFloat32, std::move(shape));
  RandomStream random(1, stream);
  for (float& x : array.as<float>()) x = static_cast<float>(random.uniform(-scale, scale));
  return array;
}

bool trains(const BenchConfig& config) { return config.spec.weights_dtype == WeightsDType::kNone; }

double bytes_of_weight(const RnnSpec& spec) {
  if (spec.weights_dtype == WeightsDType::kInt8) return 1.0;
  return spec.weights_dtype != WeightsDType::kNone || spec.math == Math::kBf16 ? 2.0 : 4.0;
}

/// A network's calls on arrays of its own.
class Passes {
 public:
  explicit Passes(const BenchConfig& config)
      : device_(default_device()),
        engine_(choose_engine(config.spec, device_)),
        params_(there(initialize_params(ParamsLayout(config.spec), 1))),
        x_(there(random_array({config.time, config.batch, config.spec.input_size}, 1.0, 2))),
        y_(device_, DType::kFloat32, {config.time, config.batch, config.spec.output_size()}),
        dy_(there(random_array(y_.shape(), 1.0, 3))),
        dx_(device_, DType::kFloat32, x_.shape()),
        dparams_(device_, DType::kFloat32, params_.shape()) {
    const ConstArrayView params{params_.data(), DType::kFloat32, params_.shape()};
    const auto inference = engine_.pack(config.spec, params, PackFor::kInference);
    workspace_ = engine_.make_workspace(inference, {config.batch, config.time});
    forward_.params = inference;
    forward_.max_time = config.time;
    forward_.batch = config.batch;
    forward_.x = x_.data();
    forward_.y = y_.mutable_data();
    if (!trains(config)) return;
    training_ = forward_;
    training_.params = engine_.pack(config.spec, params, PackFor::kTraining);
    training_.training = true;
  }
  void forward() {
    engine_.forward(forward_, workspace_.get());
    wait_for(y_);
  }
  void forward_training() {
    saved_ = engine_.forward_saving(training_);
    wait_for(y_);
  }
  void forward_backward() {
    saved_ = engine_.forward_saving(training_);
    BackwardArgs args;
    args.saved = saved_.get();
    args.dy = dy_.data();
    args.dx = dx_.mutable_data();
    args.dparams = dparams_.mutable_data();
    engine_.backward(args);
    wait_for(dparams_);
  }
  /// Whether the peak of the processor is a measure of it.
  bool on_processor() const { return engine_.device() == nullptr; }

 private:
  DeviceArray there(const Array& host) { return DeviceArray::from_host(device_, host.view()); }
  // A GPU works on by itself until somebody asks for a result.
  void wait_for(const DeviceArray& result) {
    float first = 0.0F;
    if (!on_processor()) device_.download(&first, result.data(), sizeof first);
  }

  const Device& device_;
  const Engine& engine_;
  DeviceArray params_, x_, y_, dy_, dx_, dparams_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<SavedForward> saved_;
  ForwardArgs forward_, training_;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median time of the work and median peak of the machine, measured in turn.
Measurement time_of(const std::function<void()>& work, int threads, double seconds,
                    bool on_processor) {
  std::vector<double> times, peaks;
  work();  // makes room, wakes the threads
  for (double spent = 0.0; peaks.size() < kFewest || spent < seconds;) {
    // Short work is repeated between two looks at the peak, or its caches would always be cold.
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

/// What a step reads of the recurrent weights, against what the cache gives. Under skip_input the
/// steps are all there is: no product of the input hides in their time.
void measure_reading(const BenchConfig& config, int threads, double seconds, Measurement& result) {
  BenchConfig alone = config;
  alone.spec.input_mode = InputMode::kSkipInput;
  Passes passes(alone);
  const double milliseconds =
      time_of([&] { passes.forward(); }, threads, seconds, true).milliseconds;
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
      {1, 256, 16, 50}, {1, 512, 32, 50}, {4, 128, 64, 20}, {4, 512, 64, 30}, {4, 1024, 64, 40}};
  std::vector<BenchConfig> configs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    for (const Sizes& sizes : kSizes) configs.push_back(make_config(mode, sizes));
  }
  return configs;
}

std::vector<Measurement> measure(const BenchConfig& config, int threads, double seconds) {
  Passes passes(config);
  struct Pass {
    const char* name;
    std::function<void()> work;
    double flop;
  };
  // Backward does the forward's products twice over: for the inputs and for the weights.
  const Pass all[] = {
      {"forward", [&] { passes.forward(); }, config.flop()},
      {"forward_training", [&] { passes.forward_training(); }, config.flop()},
      {"forward_backward", [&] { passes.forward_backward(); }, 3.0 * config.flop()},
  };
  std::vector<Measurement> results;
  for (const Pass& pass : all) {
    if (&pass != all && !trains(config)) break;
    Measurement one = time_of(pass.work, threads, seconds, passes.on_processor());
    one.pass = pass.name;
    one.gflops = pass.flop / one.milliseconds * 1e-6;
    if (config.batch == 1 && one.pass == "forward" && passes.on_processor()) {
      measure_reading(config, threads, seconds, one);
    }
    results.push_back(one);
  }
  return results;
}

}  // namespace openrnn::cli
