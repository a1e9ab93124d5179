// openrnn generate: text from a trained model.
#include <cstdio>

#include "cli/commands.h"
#include "openrnn/train.h"

namespace openrnn::cli {

int run(const GenerateFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  train::TrainedModel trained(flags.run, choice_of(flags.arithmetic));
  if (trained.config().task != "text") {
    throw ArgumentError("[generate] a run of the task '" + trained.config().task +
                        "', expected text");
  }
  train::SampleOptions options;
  options.symbols = flags.length;
  options.temperature = flags.temperature;
  options.top_k = flags.top_k;
  options.prime = flags.prime;
  options.seed = flags.seed;
  std::fwrite(flags.prime.data(), 1, flags.prime.size(), stdout);
  train::sample_text(trained.model(), trained.vocabulary(), options, [](std::string_view bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  });
  std::fputc('\n', stdout);
  return 0;
}

}  // namespace openrnn::cli
