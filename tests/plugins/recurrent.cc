// A plug-in with openrnn::core in it, as an audio program or a database would load one.
#include <openrnn/runtime.h>

#include <memory>
#include <vector>

/// Packs and runs a network that is worth two threads; the number of outputs, or -1 after an error.
extern "C" __attribute__((visibility("default"))) long run_network() {
  try {
    openrnn::set_num_threads(2);
    openrnn::RnnSpec spec;
    spec.num_units = 512;
    spec.input_size = 64;
    const openrnn::Array params = openrnn::initialize_params(openrnn::ParamsLayout(spec), 1);
    const auto model = std::make_shared<openrnn::PackedModel>(spec, params.view());
    openrnn::InferenceSession session(model, {.max_threads = 2});
    std::vector<float> x(std::size_t{20} * 16 * 64, 0.5F), y(std::size_t{20} * 16 * 512);
    session.run({.max_time = 20, .batch = 16, .x = x.data(), .y = y.data()});
    return static_cast<long>(y.size());
  } catch (const openrnn::Error&) {
    return -1;
  }
}
