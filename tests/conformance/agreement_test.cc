// The cpu engine against the reference, inside the derived bounds, on every instruction set and in
// every kind of arithmetic that this processor has or can emulate.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "conformance/support/grid.h"
#include "conformance/support/machine.h"

namespace openrnn::conformance {
namespace {

class CpuAgreement : public testing::TestWithParam<Case> {};

TEST_P(CpuAgreement, WithTheReference) {
  const Case& c = GetParam();
  ASSERT_EQ(cpu().unsupported(c.spec), "");
  const Data d = make_data(c);
  const Bounds bounds = bounds_of(c, d);
  for (const std::string_view isa : tested_isas(c.spec)) {
    const ForcedIsa forced(isa);
    EXPECT_EQ(compare(bounds, run_all(cpu(), c, d)).failure, "") << isa;
  }
}

std::string name_of(const testing::TestParamInfo<Case>& at) {
  return "n" + std::to_string(at.index) + "_" + test_name(at.param);
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuAgreement, testing::ValuesIn(all_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Arithmetic, CpuAgreement, testing::ValuesIn(arithmetic_cases()), name_of);

class CpuIsa : public testing::TestWithParam<std::string> {};

TEST_P(CpuIsa, RunsWhenForced) {
  const auto available = available_cpu_isas();
  if (std::find(available.begin(), available.end(), GetParam()) == available.end()) {
    EXPECT_THROW(force_cpu_isa(GetParam()), EngineError);
    GTEST_SKIP() << "this processor lacks " << GetParam();
  }
  const ForcedIsa forced(GetParam());
  EXPECT_EQ(cpu_isa(), GetParam());
  for (const int threads : {1, 3}) {
    const ForcedThreads on(threads);
    const std::string said = cpu().description();
    // Where the system refuses tiles, that follows.
    EXPECT_EQ(said.substr(0, said.find(';')),
              "cpu with " + GetParam() + " on " + std::to_string(threads) + " thread(s)");
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuIsa, testing::Values("scalar", "avx2", "avx512", "amx", "neon"),
                         [](const auto& at) { return at.param; });

}  // namespace
}  // namespace openrnn::conformance
