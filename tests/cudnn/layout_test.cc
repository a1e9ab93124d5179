// The program that makes the table of layouts: right over a cuDNN whose layout is known.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "cudnn/layout_table.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

std::string expected_table(const std::vector<RnnSpec>& specs) {
  std::string text;
  for (const RnnSpec& spec : specs) text += expected_line(spec) + "\n";
  return text;
}

TEST(LayoutTable, IsThatOfParamsLayout) {
  const std::vector<RnnSpec> specs = layout_specs();
  EXPECT_EQ(specs.size(), 456u);
  EXPECT_EQ(layout_table(specs), expected_table(specs));
}

TEST(LayoutTable, ShowsAnotherOrder) {
  if (!conformance::pretends()) GTEST_SKIP() << "only the stand-in has another order";
  const Setting permuted("STAND_IN_PERMUTE", "1");
  RnnSpec spec;
  spec.num_units = 11;  // in no other test of this program
  spec.input_size = 4;
  EXPECT_NE(layout_table({spec}), expected_table({spec}));
}

}  // namespace
}  // namespace openrnn::testing
