// The cpu engine's gradients against central differences of its own forward pass, in float64.
#include "conformance/support/difference.h"
#include "conformance/support/kinks.h"
#include "conformance/support/machine.h"

namespace openrnn::conformance {
namespace {

class CpuGradient : public testing::TestWithParam<Case> {};

TEST_P(CpuGradient, AgreesWithDifferences) {
  const Case& c = GetParam();
  Data d = data_clear_of_kinks(c);
  ASSERT_GT(distance_from_kinks(c, d), 1e-3);
  expect_right_gradients(cpu(), c, d);
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuGradient, testing::ValuesIn(difference_cases()),
                         [](const auto& at) { return test_name(at.param); });

}  // namespace
}  // namespace openrnn::conformance
