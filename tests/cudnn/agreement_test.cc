// The GPU engine against the reference, inside the derived bounds.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "openrnn/runtime.h"

namespace openrnn::conformance {
namespace {

class CudnnAgreement : public testing::TestWithParam<Case> {};

TEST_P(CudnnAgreement, WithTheReference) {
  const Case& c = GetParam();
  const Engine& subject = engine("cudnn");
  ASSERT_EQ(subject.unsupported(c.spec), "");
  const Data d = make_data(c);
  EXPECT_EQ(compare(bounds_of(c, d), run_all(subject, c, d), c.spec.dtype).failure, "");
}

INSTANTIATE_TEST_SUITE_P(Cases, CudnnAgreement, testing::ValuesIn(some_cases(5)),
                         [](const auto& at) {
                           return "n" + std::to_string(at.index) + "_" + test_name(at.param);
                         });

}  // namespace
}  // namespace openrnn::conformance
