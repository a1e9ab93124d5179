// The examples compile against the public headers alone and do what they say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

// The examples are whole programs, run as they stand.
// NOLINTBEGIN(bugprone-suspicious-include)
#define main char_model_main
#include "../../examples/char_model.cc"
#undef main
#define main streaming_main
#include "../../examples/streaming.cc"
#undef main
// NOLINTEND(bugprone-suspicious-include)

namespace openrnn {
namespace {

TEST(Examples, ACharacterModelLearnsAndWrites) {
  const std::string path =
      testing::TempDir() + "openrnn_example_" + std::to_string(::getpid()) + ".txt";
  {
    std::ofstream text(path);
    for (int i = 0; i < 300; ++i) text << "one two three " << i % 10 << "\n";
  }
  std::string name = "char_model", argument = path;
  char* arguments[] = {name.data(), argument.data()};
  testing::internal::CaptureStdout();
  EXPECT_EQ(char_model_main(2, arguments), 0);
  const std::string shown = testing::internal::GetCapturedStdout();
  std::filesystem::remove(path);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(shown, found, std::regex("step 300: (\\S+) bits per byte")));
  EXPECT_LT(std::stod(found[1]), 1.0);
  EXPECT_NE(shown.find("one two three"), std::string::npos);
}

TEST(Examples, StreamingPrintsItsSteps) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(streaming_main(), 0);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("step 4: y[0] = "), std::string::npos);
}

}  // namespace
}  // namespace openrnn
