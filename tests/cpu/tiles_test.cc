// When the operating system is asked for the tiles of AMX, and what follows from its answer. The
// tests pretend that this processor has them, and run none.
#include "cpu/isa/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "cpu/isa/isa.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::cpu {
namespace {

using conformance::Case;
using conformance::make_data;
using conformance::parse_case;
using openrnn::testing::Setting;

int questions = 0, answer = 0;
int ask() {
  ++questions;
  return answer;
}

constexpr const char* kRefused =
    "refused: a thread has an alternate signal stack (sigaltstack) too small for their state";

// What is said of each answer, which needs no tiles to run.
TEST(TilePermission, IsThatOfTheFirstAnswer) {
  const TileSource before = assume_tiles({[] { return true; }, ask});
  const struct {
    int answer;
    std::string said;
  } cases[] = {{0, "granted"},
               {ENOSPC, kRefused},
               {EPERM, "refused: Operation not permitted"},
               {EINVAL, "refused: Invalid argument"}};
  for (const auto& one : cases) {
    assume_tiles({[] { return true; }, ask});
    questions = 0;
    answer = one.answer;
    EXPECT_EQ(tile_permission(), "not asked yet");
    EXPECT_FALSE(tiles_refused());
    EXPECT_EQ(questions, 0);
    EXPECT_EQ(may_use_tiles(), one.answer == 0) << one.said;
    // Neither a later answer nor a later error counts.
    answer = one.answer == 0 ? EPERM : 0;
    errno = ENOENT;
    EXPECT_EQ(may_use_tiles(), one.answer == 0) << one.said;
    EXPECT_EQ(tiles_refused(), one.answer != 0) << one.said;
    EXPECT_EQ(tile_permission(), one.said);
    EXPECT_EQ(questions, 1) << one.said;
#if defined(__x86_64__)
    EXPECT_EQ(processor_runs("amx"), one.answer == 0) << one.said;
#endif
  }
  assume_tiles({[] { return false; }, ask});
  questions = 0;
  EXPECT_FALSE(may_use_tiles());
  EXPECT_FALSE(tiles_refused());
  EXPECT_EQ(tile_permission(), "this processor, or its operating system, has no tiles");
  EXPECT_EQ(questions, 0);
  assume_tiles(before);
}

class Tiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_emulation() || !amx_kernels()) GTEST_SKIP() << "needs AVX-512 and kernels of AMX";
    before_ = assume_tiles({[] { return true; }, ask});
    questions = answer = 0;
    force_isa("");
  }
  void TearDown() override {
    if (before_.ask) assume_tiles(before_);
    force_isa("");
  }
  static std::string kind(Math math) {
    return std::string(
        openrnn::math_kind(RnnSpec{.num_units = 3, .input_size = 2, .compute = {.math = math}}));
  }
  static bool lists_amx() { return std::ranges::count(available_cpu_isas(), "amx") == 1; }

  const Setting engine_{"OPENRNN_ENGINE", ""}, isa_{"OPENRNN_ISA", ""};
  TileSource before_{};
};

TEST_F(Tiles, AreNotAskedForByWhatNeedsNone) {
  EXPECT_EQ(cpu_isa(), "amx");
  EXPECT_TRUE(lists_amx());
  EXPECT_NE(list_engines()[1].detail.find("cpu with amx"), std::string::npos);
  for (const char* text :
       {"lstm L1 U17 I3 B3 T4 f32", "gru L1 U7 I3 B3 T4 f64", "rnn_tanh L1 U7 I3 B3 T4 f16",
        "lstm L1 U17 I3 B3 T4 f32 stored_int8", "lstm L1 U17 I3 B3 T4 f32 stored_bfloat16"}) {
    const Case c = parse_case(text, "");
    openrnn::math_kind(c.spec);
    run_all(conformance::cpu(), c, make_data(c));
  }
  EXPECT_EQ(questions, 0);
  EXPECT_EQ(amx_permission(), "not asked yet");
}

TEST_F(Tiles, AreAskedForOnceByWhatNeedsThem) {
  EXPECT_EQ(kind(Math::kBf16), "amx");
  EXPECT_EQ(questions, 1);
  EXPECT_EQ(kind(Math::kBf16x3), "bf16x3");
  EXPECT_EQ(kind(Math::kBf16), "amx");
  EXPECT_EQ(questions, 1);
  EXPECT_EQ(amx_permission(), "granted");
}

TEST_F(Tiles, AreAskedForByPacking) {
  for (const char* text : {"lstm L1 U17 I3 B3 T4 f32 bf16", "gru L1 U17 I3 B3 T4 f32 bf16x3"}) {
    assume_tiles({[] { return true; }, ask});
    questions = 0;
    const Case c = parse_case(text, "");
    conformance::cpu().pack(c.spec, make_data(c).params.view(), PackFor::kInference);
    EXPECT_EQ(questions, 1) << text;
  }
}

TEST_F(Tiles, RefusedAreSaidToBeSoAndNotAskedForAgain) {
  answer = ENOSPC;
  EXPECT_EQ(kind(Math::kBf16), "dot");
  EXPECT_EQ(kind(Math::kBf16x3), "float32");
  EXPECT_EQ(kind(Math::kBf16), "dot");
  EXPECT_EQ(questions, 1);
  EXPECT_EQ(amx_permission(), kRefused);
  EXPECT_EQ(cpu_isa(), "avx512");
  EXPECT_FALSE(lists_amx());
  EXPECT_NE(list_engines()[1].detail.find(kRefused), std::string::npos);
  expect_error<EngineError>(
      [] { force_cpu_isa("amx"); },
      std::string("[force_isa] instruction set is 'amx', expected one that this processor runs: "
                  "scalar, avx2, avx512; tiles of AMX: ") +
          kRefused);
}

// Whether float32 ran before or not, and whatever would be granted later.
TEST_F(Tiles, RefusedChangeNoBitOfBf16) {
  const Case c = parse_case("lstm L2 U33 I17 B3 T4 f32 bf16", "");
  const Case plain = parse_case("lstm L2 U33 I17 B3 T4 f32", "");
  force_isa("avx512");
  const auto expected = run_all(conformance::cpu(), c, make_data(c));
  for (const bool float32_first : {false, true}) {
    assume_tiles({[] { return true; }, ask});
    force_isa("");
    if (float32_first) run_all(conformance::cpu(), plain, make_data(plain));
    answer = EPERM;
    EXPECT_EQ(first_difference(expected, run_all(conformance::cpu(), c, make_data(c))), "");
    answer = 0;
    EXPECT_EQ(first_difference(expected, run_all(conformance::cpu(), c, make_data(c))), "");
    EXPECT_EQ(amx_permission(), "refused: Operation not permitted");
  }
}

TEST_F(Tiles, RefusedToAForcedChoiceAreAnError) {
  answer = ENOSPC;
  for (const std::string by : {"OPENRNN_ISA", "force_isa"}) {
    assume_tiles({[] { return true; }, ask});
    questions = 0;
    const Setting isa("OPENRNN_ISA", by == "OPENRNN_ISA" ? "amx" : "");
    force_isa(by == "OPENRNN_ISA" ? "" : "amx");
    EXPECT_EQ(cpu_isa(), "amx");
    EXPECT_EQ(kind(Math::kFloat32), "float32");
    EXPECT_EQ(questions, 0);
    for (int again = 0; again < 2; ++again) {
      expect_error<EngineError>([] { kind(Math::kBf16); },
                                "[" + by +
                                    "] instruction set is 'amx', expected its tiles to be "
                                    "granted; they are " +
                                    kRefused);
    }
    EXPECT_EQ(questions, 1);
  }
}

TEST_F(Tiles, ThatAreNotThereAreSaidToBeSo) {
  assume_tiles({[] { return false; }, ask});
  EXPECT_NE(cpu_isa(), "amx");
  EXPECT_EQ(kind(Math::kBf16), "dot");
  const std::string none = "this processor, or its operating system, has no tiles";
  EXPECT_EQ(amx_permission(), none);
  const Setting isa("OPENRNN_ISA", "amx");
  force_isa("");
  expect_error<EngineError>([] { cpu_isa(); },
                            "[OPENRNN_ISA] instruction set is 'amx', expected one that this "
                            "processor runs: scalar, avx2, avx512; tiles of AMX: " +
                                none);
  EXPECT_EQ(questions, 0);
}

}  // namespace
}  // namespace openrnn::cpu
