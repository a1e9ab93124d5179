// Reads networks, a line each as a line of tests/golden/cudnn_layout.txt begins, and prints the
// lines that ParamsLayout gives.
#include <cstdio>
#include <exception>
#include <iostream>

#include "params/cudnn_layout.h"

namespace {

std::int64_t number(const std::string& word) { return std::stoll(word.substr(1)); }

openrnn::RnnSpec parse(const std::string& line) {
  std::istringstream words(line);
  std::string mode, layers, units, inputs, projection, direction, input_mode, dtype;
  words >> mode >> layers >> units >> inputs >> projection >> direction >> input_mode >> dtype;
  openrnn::RnnSpec spec;
  spec.mode = openrnn::parse_rnn_mode(mode);
  spec.num_layers = number(layers);
  spec.num_units = number(units);
  spec.input_size = number(inputs);
  spec.num_proj = number(projection);
  spec.direction = openrnn::parse_direction(direction);
  spec.input_mode = openrnn::parse_input_mode(input_mode);
  spec.dtype = openrnn::parse_dtype(dtype);
  return spec;
}

}  // namespace

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%s\n", openrnn::testing::expected_line(parse(line)).c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
