#include "conformance/support/difference.h"
#include "conformance/support/kinks.h"
#include "reference/reference.h"

namespace openrnn::conformance {
namespace {

class ReferenceGradient : public testing::TestWithParam<Case> {};

TEST_P(ReferenceGradient, AgreesWithDifferences) {
  const Case& c = GetParam();
  Data d = data_clear_of_kinks(c);
  ASSERT_GT(distance_from_kinks(c, d), 1e-3);
  expect_right_gradients(reference_engine(), c, d);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReferenceGradient, testing::ValuesIn(difference_cases()),
                         [](const auto& at) { return test_name(at.param); });

}  // namespace
}  // namespace openrnn::conformance
