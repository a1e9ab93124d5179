// openrnn train: a run, with what it says of itself on the way.
#include "openrnn/train.h"

#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/report/progress.h"
#include "cli/report/series_report.h"
#include "cli/train/interrupt.h"

namespace openrnn::cli {
namespace {

constexpr int kInterrupted = 130;

std::unique_ptr<train::Run> make_run(const train::RunOptions& options) {
  try {
    return std::make_unique<train::Run>(options);
  } catch (const train::OptionError& error) {
    const std::string call = error.call() == "Run" ? "train" : "openrnn";
    throw ArgumentError("[" + call + "] " + error.text(flag_of));
  }
}

void say_start(const train::RunOptions& options, train::Run& run, Progress& progress) {
  const std::int64_t steps = run.config().fit.steps;
  if (run.resumed_from()) {
    progress.say(fmt::format("resumed {} (step {} of {})", *run.resumed_from(), run.step(), steps));
  } else if (options.resume) {
    progress.say("nothing to resume in '" + options.out + "': starting afresh");
  }
  for (const std::string& note : run.notes()) progress.say("note: " + note);
  progress.say(fmt::format("{}, {} threads, {} steps, {} windows an epoch, network: {}",
                           default_device().name(), num_threads(), steps, run.task().windows(),
                           describe(run.model().rnn().spec())));
}

train::StopReason train_to_the_end(train::Run& run, Progress& progress) {
  train::RunCallbacks callbacks;
  callbacks.after_step = [](const train::StepReport&) { return !interrupted(); };
  callbacks.on_report = [&](const train::StepReport& report) { progress.step(report); };
  callbacks.after_save = [&](const std::string& prefix) {
    progress.say(fmt::format("saved {} (step {})", prefix, run.step()));
  };
  const train::StopReason reason = run.train(callbacks);
  if (reason == train::StopReason::kPatience) {
    progress.say(fmt::format("stopped early: best validation {:.4f} at step {} is in {}",
                             run.best().value_or(0.0), run.best_step(), run.best_prefix()));
  }
  return reason;
}

/// The held-out figure, on stdout.
void print_result(train::Run& run) {
  if (run.series()) {
    print_series_score(train::score_series(run.model(), *run.series()), run.config().columns);
    return;
  }
  fmt::print("validation {:.4f} bits per byte of the file (step {})\n", run.validate(), run.step());
}

}  // namespace

int run(const TrainFlags& flags) {
  use_threads(flags.threads);
  use_device(flags.device);
  const std::unique_ptr<train::Run> made = make_run(flags.run);
  Progress progress(std::string(made->task().metric_name()), made->series() ? "rows" : "tokens");
  say_start(flags.run, *made, progress);
  watch_for_interrupts();
  if (train_to_the_end(*made, progress) == train::StopReason::kCallback) return kInterrupted;
  print_result(*made);
  return 0;
}

}  // namespace openrnn::cli
