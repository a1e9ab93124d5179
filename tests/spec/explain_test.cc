// What explain says is what a call then does.
#include <gtest/gtest.h>

#include "conformance/support/run.h"
#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "support/setting.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

TEST(Explain, NamesTheEngineTheKernelsAndTheOthers) {
  RnnSpec spec{.num_units = 8, .input_size = 3, .use_peepholes = true};
  const Explanation found = explain(spec);
  EXPECT_EQ(found.engine, "cpu");
  EXPECT_EQ(found.description, engine("cpu").description());
  EXPECT_EQ(found.kernels, "lstm step with options: use_peepholes true");
  EXPECT_EQ(found.math_kind, "float32");
  EXPECT_TRUE(found.same_bits);
  EXPECT_NE(to_string(found).find("same bits    at every run, thread count and processor"),
            std::string::npos);
  EXPECT_EQ(found.params_bytes, 4 * params_size(spec));
  ASSERT_EQ(found.others.size(), 2u);
  EXPECT_EQ(found.others[0].first, "cudnn");
  EXPECT_NE(found.others[0].second, "");
  EXPECT_EQ(found.others[1],
            (std::pair<std::string, std::string>{"reference", "slower than 'cpu'"}));
  spec.training = {.input_dropout = 0.5, .recurrent_dropout = 0.25};
  spec.zoneout_cell = 0.5;
  EXPECT_EQ(explain(spec).kernels,
            "lstm step with options: use_peepholes true, zoneout_cell 0.5, recurrent_dropout 0.25");
  spec.training.recurrent_dropout = spec.zoneout_cell = 0.0;
  spec.use_peepholes = false;
  spec.use_bias = false;
  EXPECT_EQ(explain(spec).kernels, "cudnn's lstm step");
}

TEST(Explain, ANetworkThatNoneCanRunHasNoEngine) {
  const RnnSpec spec{.num_units = 8, .input_size = 3, .compute = {.math = Math::kTf32}};
  const Explanation found = explain(spec);
  EXPECT_EQ(found.engine, "");
  EXPECT_FALSE(found.same_bits);
  EXPECT_FALSE(found.saved_bytes);
  ASSERT_EQ(found.others.size(), 3u);
  EXPECT_EQ(found.others[1].second, engine("cpu").unsupported(spec));
  EXPECT_NE(to_string(found).find("engine       none"), std::string::npos);
}

TEST(Explain, AnEngineThatIsForcedIsNamed) {
  const testing::Setting forced("OPENRNN_ENGINE", "reference");
  const Explanation found = explain(RnnSpec{.num_units = 8, .input_size = 3});
  EXPECT_EQ(found.engine, "reference");
  EXPECT_EQ(found.math_kind, "float32");
}

TEST(Explain, ADeviceHasItsOwnEngine) {
  const testing::TaggedDevice device("test", true);
  const RnnSpec spec{.num_units = 8, .input_size = 3};
  const Explanation found = explain(spec, {.max_time = 0, .batch = 0, .device = &device});
  EXPECT_EQ(found.engine, "test");
  EXPECT_EQ(found.description, "the cpu engine over tagged memory");
  EXPECT_FALSE(found.same_bits) << "a promise of the cpu alone";
  EXPECT_FALSE(found.saved_bytes);
  ASSERT_EQ(found.others.size(), 3u);
  EXPECT_EQ(found.others[1], (std::pair<std::string, std::string>{"cpu", "slower than 'test'"}));
  RnnSpec stored = spec;
  stored.compute.weights_dtype = WeightsDType::kInt8;
  const Explanation none = explain(stored, {.device = &device});
  EXPECT_EQ(none.engine, "");
  ASSERT_EQ(none.others.size(), 3u);
  const std::string able = "supports it, but is not asked for";
  EXPECT_EQ(none.others[1], (std::pair<std::string, std::string>{"cpu", able}));
  EXPECT_EQ(none.others[2], (std::pair<std::string, std::string>{"reference", able}));
}

TEST(Explain, ACallOfNothingKeepsNothing) {
  EXPECT_EQ(explain(RnnSpec{.num_units = 8, .input_size = 3}, {.max_time = 0, .batch = 0})
                .saved_bytes.value_or(-1),
            0);
}

// x, and for each chunk of 32 steps the states that enter it, a slot a layer and direction.
TEST(Explain, CountsWhatRecomputingKeeps) {
  const RnnSpec spec{
      .num_layers = 2, .num_units = 16, .input_size = 4, .direction = Direction::kBidirectional};
  const auto kept = [&](std::int64_t time, std::int64_t recompute) {
    return *explain(spec, {.max_time = time, .batch = 4, .recompute = recompute}).saved_bytes;
  };
  const auto expected = [](std::int64_t time, std::int64_t chunks) {
    return time * 4 * 4 * 4 + 2 * chunks * 2 * 2 * 4 * 16 * 4;
  };
  EXPECT_EQ(kept(320, 32), expected(320, 10));
  EXPECT_EQ(kept(321, 32), expected(321, 11));
  EXPECT_EQ(kept(320, 33), expected(320, 5));
  EXPECT_EQ(kept(4096, kRecomputeRoot), expected(4096, 64));
  EXPECT_EQ(kept(4096, 4096), expected(4096, 1));
  EXPECT_LT(8 * kept(4096, kRecomputeRoot), kept(4096, 0));
  expect_error<ArgumentError>([&] { kept(1, -2); },
                              "[explain] recompute is -2, expected a number of steps, 0 or "
                              "kRecomputeRoot");
}

// By layer and direction: an output, the saved gates, a cell; x; each place begins with a line.
TEST(Explain, CountsWhatTrainingKeeps) {
  const auto line = [](std::int64_t floats) { return (floats * 4 + 63) / 64 * 64; };
  RnnSpec spec{
      .num_layers = 2, .num_units = 5, .input_size = 3, .direction = Direction::kBidirectional};
  const std::int64_t places = 7 * 4;
  EXPECT_EQ(
      *explain(spec, {7, 4}).saved_bytes,
      line(places * 3) + 2 * (line(places * 10) + 2 * (line(places * 20) + line(places * 5))));
  spec.training.dropout = 0.5;
  EXPECT_EQ(*explain(spec, {7, 4}).saved_bytes,
            line(places * 3) + line(places * 10) +
                2 * (line(places * 10) + 2 * (line(places * 20) + line(places * 5))));
  expect_error<ArgumentError>(
      [&] {
        explain(spec, {-1, 4});
      },
      "[explain] max_time is -1, batch 4, expected 0 or more");
  expect_error<ArgumentError>(
      [&] {
        explain(spec, {4, -1});
      },
      "[explain] max_time is 4, batch -1, expected 0 or more");
}

TEST(Explain, AsText) {
  const Explanation found{.engine = "cpu",
                          .description = "a processor",
                          .kernels = "some steps",
                          .math_kind = "float32",
                          .same_bits = true,
                          .params_bytes = 12,
                          .saved_bytes = 345,
                          .others = {{"cudnn", "it is not there"}, {"reference", "slower"}}};
  EXPECT_EQ(to_string(found),
            "engine       cpu\nruns on      a processor\nkernels      some steps\n"
            "arithmetic   float32\n"
            "same bits    at every run, thread count and processor of this arithmetic\n"
            "parameters   12 bytes\nsaved        345 bytes in training\n"
            "not cudnn: it is not there\nnot reference: slower\n");
  EXPECT_EQ(to_string(Explanation{.params_bytes = 12, .others = {{"cpu", "no"}}}),
            "engine       none\nparameters   12 bytes\nnot cpu: no\n");
}

TEST(Explain, OfAGpuPromisesItsOwnBitsAlone) {
  EXPECT_NE(to_string(Explanation{.engine = "cudnn"}).find("at every run on this GPU"),
            std::string::npos);
  EXPECT_NE(to_string(Explanation{.engine = "cpu", .same_bits = true}).find("every run, thread"),
            std::string::npos);
}

}  // namespace
}  // namespace openrnn
