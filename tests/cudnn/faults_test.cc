// What a program sees when something goes wrong on the GPU. Each in a process of its own, since an
// error of a kernel is the end of all work on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "conformance/support/bounds.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;
using ::testing::ExitedWithCode;

class CudnnFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!pretends()) GTEST_SKIP() << "only the stand-in fails on request";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

constexpr const char* kPersistent = "lstm L1 U128 I128 B8 T3 f16";

/// Ends the process: prints the error of a call, or "no error".
template <class Call>
[[noreturn]] void print_error_of(const Call& call) {
  try {
    call();
    std::cerr << "no error";
  } catch (const EngineError& error) {
    std::cerr << error.what();
  }
  std::_Exit(0);
}

[[noreturn]] void run_and_print(const char* text) {
  const Case c = parse_case(text, "fault");
  const Data d = make_data(c);
  print_error_of([&] { run_inference(engine("cudnn"), c, d); });
}

TEST_F(CudnnFaults, ATrialThatBreaksTheGpuNamesWhatWasTriedAndTheRemedy) {
  const Setting fault("STAND_IN_FAULT_STATIC", "1");
  EXPECT_EXIT(
      run_and_print(kPersistent), ExitedWithCode(0),
      "; it was algorithm persist_static for .*128.*, 8 rows, 3 steps, inference; start the "
      "process again with OPENRNN_CUDNN_ALGORITHM=standard");
}

TEST_F(CudnnFaults, SoDoesACallByANamedAlgorithm) {
  const Setting fault("STAND_IN_FAULT_STATIC", "1");
  const Setting named("OPENRNN_CUDNN_ALGORITHM", "persist_static");
  EXPECT_EXIT(run_and_print("gru L2 U7 I3 B2 T5 f32"), ExitedWithCode(0),
              "; it was algorithm persist_static for .*, 2 rows, 5 steps, inference; start");
}

TEST_F(CudnnFaults, EachAlgorithmIsAnnouncedBeforeItIsTried) {
  const Setting fault("STAND_IN_FAULT_STATIC", "1");
  const Setting log("OPENRNN_LOG_LEVEL", "debug");
  EXPECT_EXIT(run_and_print(kPersistent), ExitedWithCode(0),
              "tries algorithm standard for .*\n.*tries algorithm persist_static for ");
}

TEST_F(CudnnFaults, NothingIsAnnouncedUnasked) {
  EXPECT_EXIT(run_and_print(kPersistent), ExitedWithCode(0), "^no error$");
}

TEST_F(CudnnFaults, ATrialWritesNothingOfTheCallers) {
  const Setting wild("STAND_IN_WRONG_STATIC", "inputs"), fast("STAND_IN_TIME_STATIC", "0");
  const Case c = parse_case("lstm L1 U128 I128 B8 T5 f16", "wild");
  const Result found = run_inference(engine("cudnn"), c, make_data(c));
  for (const auto& [name, values] : found.parts) {
    for (std::int64_t i = 0; i < values.view().size(); ++i) {
      ASSERT_TRUE(std::isfinite(element(values.view(), i))) << name << " " << i;
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
