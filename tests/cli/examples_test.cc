// The examples compile against the public headers alone and run; what they learn from real data the
// Python tests say.
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
#define main digits_main
#include "../../examples/digits.cc"
#undef main
#define main encoder_decoder_main
#include "../../examples/encoder_decoder.cc"
#undef main
#define main forecast_main
#include "../../examples/forecast.cc"
#undef main
#define main streaming_main
#include "../../examples/streaming.cc"
#undef main
// NOLINTEND(bugprone-suspicious-include)

#include "support/files/source_file.h"

namespace openrnn {
namespace {

// A folder that goes with the test, and a graph as a new process has it.
class Examples : public testing::Test {
 protected:
  Examples()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("openrnn_examples_" + std::to_string(::getpid()))),
        as_default_(graph_) {
    std::filesystem::create_directories(folder_);
  }
  ~Examples() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // What the program prints; it must succeed.
  static std::string run(int (*program)(int, char**), std::vector<std::string> words) {
    words.insert(words.begin(), "example");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    EXPECT_EQ(program(static_cast<int>(arguments.size()), arguments.data()), 0);
    return testing::internal::GetCapturedStdout();
  }

  static double figure(const std::string& shown, const std::string& pattern) {
    std::smatch found;
    if (std::regex_search(shown, found, std::regex(pattern))) return std::stod(found[1]);
    ADD_FAILURE() << "no " << pattern << " in\n" << shown;
    return 0.0;
  }

 private:
  std::filesystem::path folder_;
  Graph graph_;
  Graph::AsDefault as_default_;
};

TEST_F(Examples, ACharacterModelLearnsAndWrites) {
  {
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 300; ++i) text << "one two three " << i % 10 << "\n";
  }
  const std::string shown = run(char_model_main, {path("text.txt")});
  EXPECT_LT(figure(shown, "step 300: (\\S+) bits per byte"), 1.0);
  EXPECT_LT(figure(shown, "by the network: (\\S+) bits per byte"), 1.0);
  EXPECT_GT(figure(shown, "by byte frequencies: (\\S+) bits per byte"), 2.0);
  EXPECT_NE(shown.find("one two three"), std::string::npos);
}

TEST_F(Examples, DigitsAreToldApart) {
  {
    std::ofstream file(path("digits.csv"));  // digit k: a bar from column k % 8 on, low or high
    for (int line = 0; line < 320; ++line) {
      const int label = line * 7 % 10;
      file << label;
      for (int i = 0; i < 64; ++i) {
        file << ',' << (i / 8 % 2 == label / 8 && i % 8 >= label % 8 ? 16 - i % 3 : line % 3);
      }
      file << '\n';
    }
  }
  const std::string shown = run(digits_main, {path("digits.csv"), "12"});
  EXPECT_NE(shown.find("256 to train on, 64 held out"), std::string::npos);
  EXPECT_GT(figure(shown, "accuracy of the network: (\\S+)"), 0.9);
}

TEST_F(Examples, ALineOfAnotherLengthIsNoDigit) {
  std::ofstream(path("short.csv")) << "1,2,3\n4,5,6\n";
  std::string name = "digits", argument = path("short.csv");
  char* arguments[] = {name.data(), argument.data()};
  testing::internal::CaptureStderr();
  EXPECT_EQ(digits_main(2, arguments), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[digits] a line of 3 numbers, expected a label and 64 pixels\n");
}

TEST_F(Examples, TwoSaveablesInOneCheckpointGiveTheSameBits) {
  {
    std::ofstream text(path("text.txt"));
    for (char a = 'a'; a <= 'j'; ++a) {
      for (char b = 'k'; b <= 'p'; ++b) text << "x" << a << b << " Q" << b << a << "Z, it\n";
    }
  }
  const std::string shown = run(encoder_decoder_main, {path("text.txt"), path("model"), "20"});
  EXPECT_NE(shown.find("54 words to train on, 6 held out"), std::string::npos) << shown;
  EXPECT_NE(shown.find("restored 2 saveables"), std::string::npos);
  EXPECT_NE(shown.find("\nthe same bits\n"), std::string::npos);
  const TensorBundleReader reader(path("model"));
  for (const std::string scope : {"encoder", "decoder"}) {
    EXPECT_TRUE(
        reader.contains(scope + "/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel"));
  }
}

TEST_F(Examples, AForecasterBeatsTheLastValue) {
  const std::string shown =
      run(forecast_main, {source_file("tests/data/sunspots.csv"), "sunspots", "200"});
  EXPECT_LT(figure(shown, "rmse of the network: (\\S+)"),
            0.9 * figure(shown, "rmse of persistence: (\\S+)"));
}

TEST_F(Examples, StreamingPrintsItsSteps) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(streaming_main(), 0);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("step 4: y[0] = "), std::string::npos);
}

}  // namespace
}  // namespace openrnn
