// The example of a thread that may not block compiles against openrnn::core and does what it says.
#include <gtest/gtest.h>

// The example is a whole program, run as it stands.
// NOLINTBEGIN(bugprone-suspicious-include)
#define main realtime_main
#include "../../examples/realtime.cc"
#undef main
// NOLINTEND(bugprone-suspicious-include)

namespace openrnn {
namespace {

TEST(RealtimeExample, StepsAStreamWithoutAllocating) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(realtime_main(), 0);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("allocations in the callback: 0\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("blocks lost: 0\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("the same bits as in one call: yes\n"), std::string::npos) << shown;
}

TEST(RealtimeExample, CountsWhatACallbackWouldAllocate) {
  const long before = allocations;
  counting = true;
  auto values = std::make_unique<std::array<int, 100>>();
  (*values)[3] = 4;
  counting = false;
  EXPECT_EQ(allocations - before, 1);
  EXPECT_EQ((*values)[3], 4);
}

}  // namespace
}  // namespace openrnn
