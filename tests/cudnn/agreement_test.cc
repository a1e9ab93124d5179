// The GPU engine against the reference, inside the derived bounds.
#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

// Why this GPU is too old for TF32, which is no fault of the engine; empty for all else.
std::string lacks_tf32(const RnnSpec& spec) {
  const std::string why = engine("cudnn").unsupported(spec);
  const bool old =
      spec.compute.math == Math::kTf32 && why.find("compute capability") != std::string::npos;
  return old ? why : "";
}

// The variable changes what is promised here. Libraries may read it once, so it goes before they
// do.
[[maybe_unused]] const int not_overridden = unsetenv("NVIDIA_TF32_OVERRIDE");

class CudnnAgreement : public ::testing::TestWithParam<Case> {};

TEST_P(CudnnAgreement, WithTheReference) {
  const Case& c = GetParam();
  const Engine& subject = engine("cudnn");
  if (const std::string why = lacks_tf32(c.spec); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(subject.unsupported(c.spec), "");
  const Data d = make_data(c);
  EXPECT_EQ(compare(bounds_of(c, d), run_all(subject, c, d)).failure, "");
}

// All of the grid on a GPU; a stand-in computes in loops.
std::vector<Case> cases() {
  std::vector<Case> list = of_cudnn(pretends() ? some_cases(5) : all_cases());
  for (const std::string math : {"tf32", "fp16"}) {
    for (const char* text :
         {"lstm L2 U17 I33 B5 T4 f32 ", "gru L2 U17 I5 B7 T5 bi lengths f32 ",
          "rnn_tanh L2 U33 I33 B5 T3 skip f32 ", "lstm L3 U17 I5 B3 T4 P7 D0.5 f32 "}) {
      list.push_back(parse_case(text + math, "arithmetic_of_gpus"));
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Cases, CudnnAgreement, ::testing::ValuesIn(cases()), [](const auto& at) {
  return "n" + std::to_string(at.index) + "_" + test_name(at.param);
});

// So that the bounds above would show it if 'float32' became TF32 or float16.
TEST(CudnnArithmetic, IsExactUnlessAskedOtherwise) {
  const openrnn::testing::Setting algorithm("OPENRNN_CUDNN_ALGORITHM", "standard");
  // Wide enough, and of even sizes, that a library has fast kernels of the other arithmetics.
  const Case exact = parse_case("lstm L1 U128 I128 B16 T3 f32", "exact");
  const Data d = make_data(exact);
  const Bounds bounds = bounds_of(exact, d);
  const Engine& subject = engine("cudnn");
  EXPECT_EQ(compare(bounds, run_all(subject, exact, d)).failure, "");
  for (const Math math : {Math::kTf32, Math::kFp16}) {
    Case other = exact;
    other.spec.compute.math = math;
    if (!lacks_tf32(other.spec).empty()) continue;
    EXPECT_EQ(subject.math_kind(other.spec), to_string(math));
    EXPECT_NE(compare(bounds, run_all(subject, other, d)).failure, "");
  }
}

}  // namespace
}  // namespace openrnn::conformance
