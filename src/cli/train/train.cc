// openrnn train: a run, with what it says of itself on the way.
#include "openrnn/train.h"

#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/report/progress.h"
#include "cli/report/series_report.h"
#include "cli/train/interrupt.h"
#include "cli/train/processes.h"

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
  if (options.communicator && options.communicator->size() > 1) {
    progress.say(fmt::format("{} processes, each with {} of {} micro-batches, reduction {}",
                             options.communicator->size(),
                             run.config().fit.micro_batches / options.communicator->size(),
                             run.config().fit.micro_batches, train::to_string(options.reduction)));
  }
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

/// What the processes' messages have cost, of this one.
void say_cost(const train::Run& run, Progress& progress) {
  const train::ReductionCost cost = run.reduction_cost();
  if (cost.steps == 0) return;
  const auto steps = static_cast<double>(cost.steps);
  progress.say(fmt::format(
      "sums of gradients, a step: {:.2f} MB sent, {:.2f} ms{}, and {:.2f} ms waiting for the "
      "slowest "
      "process",
      static_cast<double>(cost.bytes) / steps / 1e6, cost.seconds / steps * 1e3,
      cost.seconds_overlapped > 0 ? fmt::format(", {:.2f} ms of them beside the backward pass",
                                                cost.seconds_overlapped / steps * 1e3)
                                  : "",
      cost.seconds_waited / steps * 1e3));
}

/// The run of the first process, or the part of another one, which says nothing.
int train_one(const train::RunOptions& options, const Processes& processes,
              std::unique_ptr<train::Run>& run) {
  run = make_run(options);
  watch_for_interrupts();
  if (!processes.first()) {
    train::RunCallbacks callbacks;
    callbacks.after_step = [](const train::StepReport&) { return !interrupted(); };
    return run->train(callbacks) == train::StopReason::kCallback ? kInterrupted : 0;
  }
  Progress progress(std::string(run->task().metric_name()), run->series() ? "rows" : "tokens");
  say_start(options, *run, progress);
  const train::StopReason reason = train_to_the_end(*run, progress);
  say_cost(*run, progress);
  return reason == train::StopReason::kCallback ? kInterrupted : 0;
}

/// As train_one; of several processes the first one says what was wrong with any of them.
int train_all(train::RunOptions options, Processes& processes, std::unique_ptr<train::Run>& run) {
  if (!processes.communicator()) return train_one(options, processes, run);
  try {
    processes.connect();
    options.communicator = processes.communicator();
    return train_one(options, processes, run);
  } catch (const std::exception& error) {
    const Fault fault = fault_of(error);
    // Before another one exits, after which mpirun ends this one.
    if (processes.first()) complain(fault);
    run.reset();
    processes.finish();
    return fault.code;
  }
}

}  // namespace

int run(const TrainFlags& flags) {
  Processes processes(flags);
  use_threads(flags.threads);
  processes.share_threads(flags.threads);
  std::unique_ptr<train::Run> run;
  try {
    use_device(flags.device);
    train::RunOptions options = flags.run;
    options.reduction = flags.reduction.value_or(train::Reduction::kExact);
    const int code = train_all(options, processes, run);
    if (code == 0 && processes.first()) {
      print_result(*run);
      flush_stdout();
    }
    run.reset();
    processes.finish();
    return code;
  } catch (const std::exception& error) {
    processes.abort(error.what());
    throw;
  }
}

}  // namespace openrnn::cli
