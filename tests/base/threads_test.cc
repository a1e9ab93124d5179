#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "openrnn/base.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

// Each runs in a process of its own, since the variable is read once.
int threads_with(const char* value) {
  setenv("OPENRNN_NUM_THREADS", value, 1);
  return num_threads();
}

TEST(ThreadsDeathTest, TheVariableDecides) {
  EXPECT_EXIT(std::_Exit(threads_with("3")), testing::ExitedWithCode(3), "");
  EXPECT_EXIT(std::_Exit(threads_with("1")), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(std::_Exit(threads_with("1024") / 8), testing::ExitedWithCode(128), "");
  EXPECT_EXIT(
      std::_Exit(threads_with("")),
      [](int status) { return WIFEXITED(status) && WEXITSTATUS(status) >= 1; }, "");
}

// Without the variable: no more than the processors on which the process may run.
TEST(ThreadsDeathTest, AreThoseThatTheProcessMayUse) {
  const auto of_this_processor = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::_Exit(1);  // as in a sandbox
    unsetenv("OPENRNN_NUM_THREADS");
    std::_Exit(num_threads());
  };
  EXPECT_EXIT(of_this_processor(), testing::ExitedWithCode(1), "");
}

TEST(ThreadsDeathTest, AWrongVariableIsNamed) {
  const auto run = [](const char* value) {
    try {
      threads_with(value);
    } catch (const ArgumentError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(7);
    }
    std::_Exit(0);
  };
  for (const char* value : {"0", "-1", "two", "3x", "1025"}) {
    EXPECT_EXIT(run(value), testing::ExitedWithCode(7),
                std::string("^.num_threads. OPENRNN_NUM_THREADS is '") + value +
                    "', expected a whole number from 1 to 1024")
        << value;
  }
}

TEST(Threads, AreSetWithinLimits) {
  const int before = num_threads();
  EXPECT_GE(before, 1);
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
  for (const int n : {1, 1024}) {
    set_num_threads(n);
    EXPECT_EQ(num_threads(), n);
  }
  set_num_threads(3);
  for (const int n : {0, -2, 1025}) {
    expect_error<ArgumentError>(
        [n] { set_num_threads(n); },
        "[set_num_threads] n is " + std::to_string(n) + ", expected 1 to 1024");
  }
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(before);
}

}  // namespace
}  // namespace openrnn
