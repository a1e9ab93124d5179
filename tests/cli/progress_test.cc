// What training says of itself where there is no terminal.
#include "cli/report/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace openrnn::cli {
namespace {

TEST(Progress, ATimeHasHoursFromTheFirstOnAndIsRounded) {
  EXPECT_EQ(clock_text(0.0), "0:00");
  EXPECT_EQ(clock_text(9.4), "0:09");
  EXPECT_EQ(clock_text(9.6), "0:10");
  EXPECT_EQ(clock_text(62.0), "1:02");
  EXPECT_EQ(clock_text(3599.0), "59:59");
  EXPECT_EQ(clock_text(3600.0), "1:00:00");
  EXPECT_EQ(clock_text(7199.0), "1:59:59");
  EXPECT_EQ(clock_text(11045.0), "3:04:05");
  EXPECT_EQ(clock_text(360000.0), "100:00:00");
  EXPECT_EQ(clock_text(std::numeric_limits<double>::infinity()), "277777:46:40");
}

}  // namespace
}  // namespace openrnn::cli
