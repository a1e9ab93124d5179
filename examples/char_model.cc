// A character model of any text, trained and sampled: char_model FILE [STEPS]
#include <openrnn/openrnn.h>

#include <array>
#include <cmath>
#include <iostream>

namespace {

// The baseline: bits per byte of a text by the byte frequencies of another.
double bits_by_frequency(std::string_view train, std::string_view text) {
  std::array<double, 256> counts{};
  counts.fill(1.0);  // no byte has probability 0
  for (const char byte : train) counts[static_cast<unsigned char>(byte)] += 1.0;
  const double all = static_cast<double>(train.size()) + 256.0;
  double bits = 0.0;
  for (const char byte : text) bits -= std::log2(counts[static_cast<unsigned char>(byte)] / all);
  return bits / static_cast<double>(text.size());
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace openrnn::train;
  const Text text = load_text({.path = argc > 1 ? argv[1] : "README.md"});
  const std::int64_t steps = argc > 2 ? std::stoll(argv[2]) : 300;

  // The core: a model, its task, an optimizer, the loop.
  SequenceModel model({.network = {.num_units = 128},
                       .vocabulary = text.vocabulary.size(),
                       .embedding = 32,
                       .outputs = text.vocabulary.size()});
  TextTask task(model, text, {.batch = 16, .seq_len = 50});
  AdamOptimizer adam;
  Fit fit(task, adam, {.steps = steps, .schedule = {.learning_rate = 5e-3, .warmup_steps = 20}});
  fit.run({[](const StepReport& report) {
    if (report.step % 20 == 0) {
      std::cout << "step " << report.step << ": " << report.metric() << " bits per byte\n";
    }
    return true;
  }});

  std::cout << "held out, by byte frequencies: " << bits_by_frequency(text.train, text.valid)
            << " bits per byte\n"
            << "held out, by the network: " << task.validate(/*quick=*/false) << " bits per byte\n"
            << sample_text(model, text.vocabulary, {.symbols = 300, .temperature = 0.5}) << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
