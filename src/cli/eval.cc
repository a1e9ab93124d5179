// openrnn eval: how well a trained model predicts a file.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/report/series_report.h"
#include "openrnn/train.h"

namespace openrnn::cli {
namespace {

void eval_text(train::TrainedModel& trained, const EvalFlags& flags) {
  const train::TextBytes text =
      train::TextBytes::of_file(flags.input, train::TextOptions{}.map_above);
  if (text.size() == 0) {
    throw ArgumentError("[eval] '" + flags.input + "' is empty, expected a text");
  }
  std::string context;
  if (!flags.context.empty()) {
    context = read_file(flags.context);
    // Only the last part of the context, as long as the warm-up, matters; starting at a line does
    // not split a character.
    constexpr std::size_t kEnough = 4096;
    if (context.size() > kEnough) {
      const std::size_t line = context.find('\n', context.size() - kEnough);
      if (line != std::string::npos && line + 1 < context.size()) context.erase(0, line + 1);
    }
  }
  const train::TextScore score =
      train::score_text(trained.model(), trained.vocabulary(), text, context);
  fmt::print("bits_per_byte {:.4f}\n", score.bits_per_byte());
  fmt::print("bits {:.1f}\nbytes {}\nsymbols {}\n", score.bits, score.bytes, score.symbols);
}

void eval_series(train::TrainedModel& trained, const EvalFlags& flags) {
  const train::RunConfig& config = trained.config();
  const train::SeriesWindows windows(train::open_series(flags.input, config.columns),
                                     train::series_options(config),
                                     train::load_scaling(trained.extras()));
  print_series_score(train::score_series(trained.model(), windows), config.columns);
}

}  // namespace

int run(const EvalFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  require_file("--input", flags.input);
  if (!flags.context.empty()) require_file("--context", flags.context);
  train::TrainedModel trained(flags.run, choice_of(flags.arithmetic));
  if (!flags.context.empty() && trained.config().task != "text") {
    throw ArgumentError("[eval] --context with a run of the task " + trained.config().task +
                        ", expected it with one of the task text alone");
  }
  if (trained.config().task == "text") {
    eval_text(trained, flags);
  } else {
    eval_series(trained, flags);
  }
  fmt::print("checkpoint {}\n", trained.prefix());
  return 0;
}

}  // namespace openrnn::cli
