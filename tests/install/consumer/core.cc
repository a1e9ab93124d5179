// What an embedder of openrnn::core sees: sizes of a network, and an error with its message.
#include <openrnn/params.h>

#include <cstdio>
#include <string>

int main() {
  openrnn::RnnSpec spec;
  spec.num_layers = 2;
  spec.num_units = 3;
  spec.input_size = 5;
  // Per layer 4 gates, each with W, R and two biases; worked out by hand.
  const std::int64_t expected = 4 * (3 * 5 + 3 * 3 + 6) + 4 * (3 * 3 + 3 * 3 + 6);
  if (openrnn::ParamsLayout(spec).size() != expected) return 1;
  try {
    spec.num_units = 0;
    spec.validate();
    return 2;
  } catch (const openrnn::ArgumentError& error) {
    if (std::string(error.what()).find("num_units") == std::string::npos) return 3;
  }
  std::puts("consumer of core: ok");
}
