// A character model of any text, trained and sampled: char_model FILE
#include <openrnn/openrnn.h>

#include <iostream>

int main(int argc, char** argv) try {
  using namespace openrnn::train;
  const Text text = load_text({.path = argc > 1 ? argv[1] : "README.md"});

  // The core: a model, its task, an optimizer, the loop.
  SequenceModel model({.units = 128,
                       .vocabulary = text.vocabulary.size(),
                       .embedding = 32,
                       .outputs = text.vocabulary.size()});
  TextTask task(model, text, {.batch = 16, .seq_len = 50});
  AdamOptimizer adam;
  Fit fit(task, adam, {.steps = 300, .schedule = {.learning_rate = 5e-3, .warmup_steps = 20}});
  fit.run({[](const StepReport& report) {
    if (report.step % 20 == 0) {
      std::cout << "step " << report.step << ": " << report.metric << " bits per byte\n";
    }
    return true;
  }});

  std::cout << sample_text(model, text.vocabulary, {.symbols = 300, .temperature = 0.5}) << '\n';
  return 0;
} catch (const openrnn::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
