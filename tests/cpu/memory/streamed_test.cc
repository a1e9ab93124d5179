// Gates that are written past the caches: the bits of those that are not.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cpu/plan/plan.h"
#include "cpu/steps/saved.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::Data;
using conformance::ForcedThreads;
using conformance::Result;

/// Whatever can be streamed is while it lives.
class Streaming {
 public:
  Streaming() : before_(assume_streams(true)) {}
  ~Streaming() { assume_streams(before_); }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;

 private:
  bool before_;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&list](const std::string& text) {
    list.push_back(conformance::parse_case(text, "layers"));
  };
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    add(mode + " L2 U48 I17 B7 T5 f32 D0.5 lengths");
    add(mode + " L2 U32 I33 B33 T3 f32 bf16 bi");
    add(mode + " L1 U64 I15 B17 T4 f32 bf16x3");
    add(mode + " L2 U16 I16 B3 T7 f64 skip lengths");
    add(mode + " L2 U80 I33 B1 T9 b16 lengths");
    // Rows that end within a line.
    add(mode + " L2 U33 I17 B3 T5 f32 lengths");
    add(mode + " L1 U17 I7 B17 T3 f32 bf16");
  }
  add("lstm L2 U32 I17 B5 T6 f32 P9 lengths");
  add("lstm L1 U32 I17 B5 T6 f32 peepholes");
  add("lstm L1 U48 I17 B5 T6 f32 clip");
  add("gru L2 U48 I17 B5 T6 f32 one_bias");
  return list;
}

class Streamed : public ::testing::TestWithParam<Case> {};

TEST_P(Streamed, ChangeNoBit) {
  const Case& c = GetParam();
  const Data d = conformance::make_data(c);
  const Result expected = run_training(conformance::cpu(), c, d);
  const Streaming streaming;
  for (const int threads : {1, 2, 3}) {
    const ForcedThreads forced(threads);
    EXPECT_EQ(first_difference(expected, run_training(conformance::cpu(), c, d)), "")
        << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Streamed, ::testing::ValuesIn(cases()),
                         [](const auto& at) { return conformance::test_name(at.param); });

/// Whether a call of `time` steps would stream gates at `base`, `step` apart.
bool streams(const Case& c, int threads, float* base, std::int64_t step = 1,
             std::int64_t layers = 1) {
  const Data d = conformance::make_data(c);
  const auto packed = conformance::cpu().pack(c.spec, d.params.view(), PackFor::kTraining);
  const auto& weights = static_cast<const CpuPacked<float>&>(*packed);
  const ForwardArgs args = conformance::args_without_arrays(c, packed, true);
  return streams_gates(weights, args, layers, threads, Grid<float>{base, step, 1});
}

Case long_case(const std::string& options, std::int64_t units, std::int64_t time) {
  Case c = conformance::parse_case("lstm L1 U" + std::to_string(units) + " I3 B1 T1 f32" + options,
                                   "layers");
  c.time = time;
  return c;
}

// Where they are more than the caches of the threads keep, and lines are written whole.
TEST(StreamedGates, AreThoseThatTheCachesDoNotKeep) {
  alignas(64) static float lines[32];
  const Case small = long_case("", 16, 1);
  const Data d = conformance::make_data(small);
  const auto packed = conformance::cpu().pack(small.spec, d.params.view(), PackFor::kTraining);
  const auto& weights = static_cast<const CpuPacked<float>&>(*packed);
  const bool can = weights.table().tiles && weights.kernels().lanes == 16;
  // Of 16 units an LSTM saves four lines of 64 bytes a step.
  const std::int64_t most = kStreamedL2s * static_cast<std::int64_t>(l2_bytes()) / 256;
  EXPECT_FALSE(streams(long_case("", 16, most), 1, lines));
  EXPECT_EQ(streams(long_case("", 16, most + 1), 1, lines), can);
  EXPECT_FALSE(streams(long_case("", 16, 2 * most), 2, lines));
  EXPECT_EQ(streams(long_case("", 16, 2 * most + 1), 2, lines), can);
  EXPECT_EQ(streams(long_case("", 32, most / 2 + 1), 1, lines), can);
  EXPECT_EQ(streams(long_case("", 16, most / 2 + 1), 1, lines, 1, 2), can) << "two layers";
  EXPECT_FALSE(streams(long_case("", 24, 4 * most), 1, lines)) << "half a line of each gate";
  EXPECT_FALSE(streams(long_case("", 16, 4 * most), 1, lines + 8)) << "not at a line";
  EXPECT_FALSE(streams(long_case("", 16, 4 * most), 1, lines, 0)) << "the gates of one step";
  EXPECT_FALSE(streams(long_case(" peepholes", 16, 4 * most), 1, lines)) << "a cell with options";
  const Streaming streaming;
  EXPECT_EQ(streams(small, 1, lines), can);
}

}  // namespace
}  // namespace openrnn::cpu
