// The GPU engine against the cpu engine of the same machine: by both bounds together.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "conformance/support/machine.h"

namespace openrnn::conformance {
namespace {

/// The first element that is farther from its counterpart than both may err; empty: none is.
std::string first_apart(const Bounds& bounds, const Result& a, const Result& b) {
  for (const auto& [name, reference] : bounds.parts) {
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const double left = element(a[name].view(), static_cast<std::int64_t>(i));
      const double right = element(b[name].view(), static_cast<std::int64_t>(i));
      const double bound = 2.0 * border_error(reference[i]);
      if (std::abs(left - right) <= bound) continue;
      std::ostringstream out;
      out << name << "[" << i << "] is " << left << " and " << right << ", bound " << bound;
      return out.str();
    }
  }
  return {};
}

class CudnnAgainstCpu : public testing::TestWithParam<Case> {};

TEST_P(CudnnAgainstCpu, WithinBothBounds) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Bounds bounds = bounds_of(c, d);
  EXPECT_EQ(first_apart(bounds, run_all(engine("cudnn"), c, d), run_all(engine("cpu"), c, d)), "");
}

INSTANTIATE_TEST_SUITE_P(Cases, CudnnAgainstCpu, testing::ValuesIn(of_cudnn(some_cases(9))),
                         [](const auto& at) {
                           return "n" + std::to_string(at.index) + "_" + test_name(at.param);
                         });

}  // namespace
}  // namespace openrnn::conformance
