// The opaque layout against the table that was made by asking cuDNN.
#include "params/cudnn_layout.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/files/source_file.h"

namespace openrnn::testing {
namespace {

TEST(CudnnLayout, IsThatOfTheTable) {
  std::ifstream file(source_file("tests/golden/cudnn_layout.txt"));
  std::string first, line;
  ASSERT_TRUE(std::getline(file, first)) << "the table is empty";
  ASSERT_TRUE(first.starts_with("# Made by ")) << first;
  EXPECT_NE(first.find("cuDNN 9."), std::string::npos) << "the first line names the version";
  std::vector<std::string> lines;
  while (std::getline(file, line)) lines.push_back(line);
  const std::vector<RnnSpec> specs = layout_specs();
  ASSERT_EQ(lines.size(), specs.size());
  for (std::size_t n = 0; n < specs.size(); ++n) EXPECT_EQ(lines[n], expected_line(specs[n]));
}

TEST(CudnnLayout, LinesNameTheNetworkAndWhatIsAbsent) {
  RnnSpec spec;
  spec.mode = RnnMode::kRnnTanh;
  spec.num_units = spec.input_size = 2;
  EXPECT_EQ(expected_line(spec),
            "rnn_tanh L1 U2 I2 P0 unidirectional linear_input float32: 12; 0 4 8 10");
  spec.input_mode = InputMode::kSkipInput;
  EXPECT_EQ(expected_line(spec),
            "rnn_tanh L1 U2 I2 P0 unidirectional skip_input float32: 8; - 0 4 6");
}

}  // namespace
}  // namespace openrnn::testing
