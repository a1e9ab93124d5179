// What `openrnn bench` measures: the configurations, their work, and the numbers made of times.
#include <gtest/gtest.h>

#include "cli/bench/measure.h"
#include "cli/bench/passes.h"

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

}  // namespace
}  // namespace openrnn::cli
