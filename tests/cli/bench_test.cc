// What `openrnn bench` measures: the configurations, their work, and the numbers made of times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/measure.h"
#include "cli/bench/passes.h"
#include "support/tagged_device.h"

namespace openrnn::cli {
namespace {

TEST(Bench, ConfigurationsAreThoseOfTheirNames) {
  std::vector<std::string> names;
  for (const BenchConfig& config : bench_configs()) {
    const RnnSpec& spec = config.spec;
    names.push_back(config.name);
    EXPECT_EQ(config.name, std::string(spec.mode == RnnMode::kLstm ? "LSTM" : "GRU") + " L" +
                               std::to_string(spec.num_layers) + " U" +
                               std::to_string(spec.num_units) + " B" +
                               std::to_string(config.batch) + " T" + std::to_string(config.time));
    EXPECT_EQ(spec.input_size, spec.num_units);
  }
  const std::vector<std::string> sizes{
      "L1 U64 B1 T100",  "L1 U128 B1 T100", "L1 U256 B1 T100", "L1 U512 B1 T50",  "L1 U1024 B1 T50",
      "L2 U64 B1 T100",  "L2 U256 B1 T100", "L4 U64 B1 T100",  "L4 U256 B1 T100", "L1 U256 B16 T50",
      "L1 U512 B32 T50", "L4 U128 B64 T20", "L4 U512 B64 T30", "L4 U1024 B64 T40"};
  std::vector<std::string> expected;
  for (const char* const mode : {"LSTM ", "GRU "}) {
    for (const std::string& size : sizes) expected.push_back(mode + size);
  }
  EXPECT_EQ(names, expected);
}

TEST(Bench, WorkIsThatOfTheProducts) {
  BenchConfig config{.name = "", .spec = {.num_layers = 3, .num_units = 5, .input_size = 7}};
  config.batch = 11;
  config.time = 13;
  EXPECT_EQ(config.flop(), 2.0 * 4 * 5 * (7 + 5) * 3 * 11 * 13);
  EXPECT_EQ(config.recurrent_bytes(), 3.0 * 4 * 5 * 5 * 4);
  config.spec.mode = RnnMode::kGru;
  EXPECT_EQ(config.flop(), 2.0 * 3 * 5 * (7 + 5) * 3 * 11 * 13);
  const double weights = 3.0 * 3 * 5 * 5;
  for (const auto& [math, stored, bytes] : {std::tuple(Math::kFloat32, WeightsDType::kNone, 4.0),
                                            {Math::kBf16, WeightsDType::kNone, 2.0},
                                            {Math::kBf16x3, WeightsDType::kNone, 4.0},
                                            {Math::kFloat32, WeightsDType::kFloat16, 2.0},
                                            {Math::kFloat32, WeightsDType::kBfloat16, 2.0},
                                            {Math::kFloat32, WeightsDType::kInt8, 1.0}}) {
    config.spec.compute = {.math = math, .weights_dtype = stored};
    EXPECT_EQ(config.recurrent_bytes(), weights * bytes);
  }
}

TEST(Bench, PassesAreThoseThatTheWeightsAllow) {
  BenchConfig config{.name = "", .spec = {.num_units = 4, .input_size = 4}, .batch = 2, .time = 3};
  const auto passes = [&] {
    std::vector<std::pair<std::string, double>> found;
    Passes all(config);
    for (const Passes::Pass& pass : all.all()) {
      pass.work();
      found.emplace_back(pass.name, pass.flop / config.flop());
    }
    return found;
  };
  using Found = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(passes(),
            (Found{{"forward", 1.0}, {"forward_training", 1.0}, {"forward_backward", 3.0}}));
  config.spec.compute.weights_dtype = WeightsDType::kInt8;
  EXPECT_EQ(passes(), (Found{{"forward", 1.0}}));
}

TEST(Bench, NumbersOfTimes) {
  EXPECT_EQ(median({5.0}), 5.0);
  EXPECT_EQ(median({3.0, 9.0, 1.0}), 3.0);
  EXPECT_EQ(median({4.0, 1.0, 3.0, 2.0}), 3.0);
  const Measurement one{.pass = "", .gflops = 30.0, .peak = 120.0, .tiles = 40.0};
  EXPECT_EQ(one.percent_of_peak(), 25.0);
  EXPECT_EQ(one.percent_of_tiles(), 75.0);
}

// Writes down what it is asked to compute.
class RecordingEngine : public openrnn::testing::TaggedEngine {
 public:
  using TaggedEngine::TaggedEngine;
  std::shared_ptr<const PackedParams> pack(const RnnSpec& spec, const ConstArrayView& params,
                                           const PackOptions& options) const override {
    packed.push_back(options.purpose);
    return TaggedEngine::pack(spec, params, options);
  }
  std::unique_ptr<Workspace> make_workspace(std::shared_ptr<const PackedParams> params,
                                            const WorkspaceLimits& limits) const override {
    made.emplace_back(limits.batch, limits.time);
    return TaggedEngine::make_workspace(std::move(params), limits);
  }
  void forward(const ForwardArgs& args, Workspace* workspace) const override {
    ran.push_back(args);
    has_workspace = workspace != nullptr;
    TaggedEngine::forward(args, workspace);
  }
  std::unique_ptr<SavedForward> forward_saving(const ForwardArgs& args) const override {
    saved.push_back(args);
    return TaggedEngine::forward_saving(args);
  }
  void backward(const BackwardArgs& args) const override {
    went_back.push_back(args);
    TaggedEngine::backward(args);
  }
  mutable std::vector<PackFor> packed;
  mutable std::vector<std::pair<std::int64_t, std::int64_t>> made;
  mutable std::vector<ForwardArgs> ran, saved;
  mutable std::vector<BackwardArgs> went_back;
  mutable bool has_workspace = false;
};

class RecordingDevice : public openrnn::testing::TaggedDevice {
 public:
  RecordingDevice() : TaggedDevice("recording:0", false), engine_(*this, false) {}
  const RecordingEngine* engine() const override { return &engine_; }
  void download(void* host, const void* from, std::size_t bytes) const override {
    read.emplace_back(from, bytes);
    TaggedDevice::download(host, from, bytes);
  }
  /// `count` floats of its memory.
  std::vector<float> floats(const void* from, std::size_t count) const {
    std::vector<float> values(count);
    TaggedDevice::download(values.data(), from, count * sizeof(float));
    return values;
  }
  mutable std::vector<std::pair<const void*, std::size_t>> read;

 private:
  RecordingEngine engine_;
};

/// The default device, as long as this is there.
class OnDevice {
 public:
  explicit OnDevice(const Device& device) { set_default_device(device); }
  ~OnDevice() { set_default_device(cpu_device()); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

bool all_within(const std::vector<float>& values, float most) {
  const bool moved = std::ranges::any_of(values, [](float x) { return x != 0.0F; });
  return moved && std::ranges::all_of(values, [=](float x) { return std::abs(x) <= most; });
}

TEST(Bench, PassesRunOnTheDefaultDevice) {
  static const RecordingDevice device;
  const OnDevice chosen(device);
  const RecordingEngine& engine = *device.engine();
  const BenchConfig config{.name = "",
                           .spec = {.num_units = 4, .input_size = 3},
                           .batch = 2,
                           .time = 5,
                           .recompute = kRecomputeRoot};
  Passes passes(config);
  EXPECT_FALSE(passes.on_processor());
  EXPECT_EQ(engine.packed, (std::vector{PackFor::kInference, PackFor::kTraining}));
  using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(engine.made, (Sizes{{2, 5}}));
  const std::vector<Passes::Pass> all = passes.all();
  ASSERT_EQ(all.size(), 3U);
  for (const Passes::Pass& pass : all) pass.work();
  ASSERT_EQ(engine.ran.size(), 1U);
  ASSERT_EQ(engine.saved.size(), 2U);
  ASSERT_EQ(engine.went_back.size(), 1U);
  const ForwardArgs& inference = engine.ran[0];
  EXPECT_TRUE(engine.has_workspace);
  EXPECT_FALSE(inference.training);
  EXPECT_EQ(inference.params->purpose(), PackFor::kInference);
  for (const ForwardArgs& training : engine.saved) {
    EXPECT_TRUE(training.training);
    EXPECT_EQ(training.recompute, kRecomputeRoot);
    EXPECT_EQ(training.params->purpose(), PackFor::kTraining);
    EXPECT_EQ(training.max_time, 5);
    EXPECT_EQ(training.batch, 2);
    EXPECT_EQ(training.x, inference.x);
    EXPECT_EQ(training.y, inference.y);
  }
  const BackwardArgs& back = engine.went_back[0];
  EXPECT_NE(back.saved, nullptr);
  EXPECT_TRUE(all_within(device.floats(inference.x, std::size_t{5} * 2 * 3), 1.0F));
  EXPECT_TRUE(all_within(device.floats(back.dy, std::size_t{5} * 2 * 4), 1.0F));
  EXPECT_TRUE(all_within(device.floats(inference.y, std::size_t{5} * 2 * 4), 1.0F));
  EXPECT_TRUE(all_within(device.floats(back.dx, std::size_t{5} * 2 * 3), 100.0F));
  const auto size = static_cast<std::size_t>(params_size(config.spec));
  EXPECT_TRUE(all_within(device.floats(back.dparams, size), 100.0F));
  // Each ends when something that it wrote has been read.
  using Read = std::vector<std::pair<const void*, std::size_t>>;
  EXPECT_EQ(device.read, (Read{{inference.y, 4}, {inference.y, 4}, {back.dparams, 4}}));
}

TEST(Bench, MeasurementsSayWhatTheyCanBeComparedWith) {
  BenchConfig config{.name = "", .spec = {.num_units = 4, .input_size = 4}, .batch = 1, .time = 3};
  const auto compared = [&] {
    std::string text;
    for (const Measurement& one : measure(config, 1, 1e-3)) {
      const double factor = one.pass == "forward_backward" ? 3.0 : 1.0;
      EXPECT_DOUBLE_EQ(one.gflops, factor * config.flop() / one.milliseconds * 1e-6);
      EXPECT_LE(one.best_milliseconds, one.milliseconds);
      text += (text.empty() ? "" : ", ") + one.pass;
      if (one.peak > 0.0) text += " peak";
      if (one.tiles > 0.0) text += " tiles";
      EXPECT_EQ(one.bandwidth > 0.0, one.most_bandwidth > 0.0);
      if (one.bandwidth > 0.0) text += " reading";
    }
    return text;
  };
  EXPECT_EQ(compared(), "forward peak reading, forward_training peak, forward_backward peak");
  config.batch = 2;
  EXPECT_EQ(compared(),
            "forward peak tiles, forward_training peak tiles, forward_backward peak tiles");
  config.spec.compute.math = Math::kBf16;
  EXPECT_EQ(compared(), "forward peak, forward_training peak, forward_backward peak");
  config.spec.compute = {.weights_dtype = WeightsDType::kFloat16};
  EXPECT_EQ(compared(), "forward peak");
  config.spec.compute = {};
  static const RecordingDevice device;
  const OnDevice chosen(device);
  EXPECT_EQ(compared(), "forward, forward_training, forward_backward");
  config.batch = 1;
  EXPECT_EQ(compared(), "forward, forward_training, forward_backward");
}

}  // namespace
}  // namespace openrnn::cli
