// What an embedder of openrnn::core sees: one network run step by step, and an error with its
// message.
#include <openrnn/runtime.h>
#include <openrnn/runtime_file.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

// h = tanh(w x + r h' + bw + br), for two steps of the smallest network.
bool runs() {
  const std::vector<float> params = {0.5f, -0.25f, 0.125f, 0.0625f};  // w r bw br
  const std::vector<float> x = {0.75f, -1.5f};
  std::vector<float> y(2);
  const openrnn::RnnSpec spec{.mode = openrnn::RnnMode::kRnnTanh, .num_units = 1, .input_size = 1};
  const openrnn::ConstArrayView view{params.data(), openrnn::DType::kFloat32, {4}};
  openrnn::InferenceSession session(std::make_shared<openrnn::PackedModel>(spec, view));
  session.prepare(1, 2);
  session.run({.max_time = 2, .batch = 1, .x = x.data(), .y = y.data()});
  const double first = std::tanh(0.5 * 0.75 + 0.1875);
  const double second = std::tanh(0.5 * -1.5 - 0.25 * first + 0.1875);
  return std::abs(y[0] - first) < 1e-6 && std::abs(y[1] - second) < 1e-6;
}

bool refuses() {
  try {
    openrnn::RnnSpec{.num_units = 0, .input_size = 1}.validate();
  } catch (const openrnn::ArgumentError& error) {
    return std::string(error.what()).find("num_units") != std::string::npos;
  }
  return false;
}

// The reader of model files is part of the core.
bool refuses_a_file() {
  const std::vector<std::byte> bytes(16);
  try {
    openrnn::load_packed(bytes);
  } catch (const openrnn::FormatError& error) {
    return error.path() == "memory";
  }
  return false;
}

}  // namespace

int main() {
  if (!runs()) return 1;
  if (!refuses()) return 2;
  if (!refuses_a_file()) return 3;
  std::puts("consumer of core: ok");
}
