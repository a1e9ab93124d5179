#include "cli/flags/train_flags.h"

#include <algorithm>

#include "cli/flags/network_options.h"

namespace openrnn::cli {
namespace {

void add_data_flags(CLI::App* app, train::RunOptions& flags) {
  add_choice(app, "--task", flags.task, {"text", "series"},
             "text: next-symbol model; series: forecast (default text)");
  add_text(app, "--input", flags.input, "The text or the CSV file to train on");
  add_text(app, "--valid", flags.valid,
           "A text to validate on (default: the last lines of the input)");
  add_number(app, "--valid-fraction", flags.valid_fraction, kAny,
             "Fraction of the input held out (default: text 0.05, series 0.2)");
  add_choice(app, "--level", flags.level, train::parse_text_level, {"byte", "char"},
             "Symbols of a text (default byte)");
  // CLI11 drops an empty word.
  const auto take_columns = [app, &flags](const std::vector<std::string>& names) {
    if (names.empty() || std::find(names.begin(), names.end(), "") != names.end()) {
      refuse_value(app, "--columns", "with an empty name", "names or numbers of columns");
    }
    flags.columns = names;
  };
  app->add_option_function<std::vector<std::string>>(
         "--columns", take_columns, "Columns of a series, by name or number (default: all)")
      ->delimiter(',');
  add_number(app, "--horizon", flags.horizon, kPositive, "Rows ahead to forecast (default 1)");
  add_choice(
      app, "--target", flags.target, {"one", "sequence"},
      "sequence: forecast after each row of a window; one: after its last (default sequence)");
}

void add_model_flags(CLI::App* app, train::RunOptions& flags) {
  for (const train::NetworkOption& option : train::network_options()) {
    add_network_option(app, option, flags.network);
  }
  add_number(app, "--embedding", flags.embedding, kNotNegative,
             "Width of the embedding, 0 for one-hot (default 64)");
}

void add_fit_flags(CLI::App* app, train::RunOptions& flags) {
  add_number(app, "--batch", flags.batch, kPositive,
             "Batch size: parallel streams of a text, windows of a series (default 32)");
  add_number(app, "--seq-len", flags.seq_len, kPositive,
             "Sequence length: time steps of a window (default 100; series 24)");
  add_number(app, "--epochs", flags.epochs, kPositive,
             "Passes over the data (default: 10, limited to 500 to 20000 steps)");
  add_number(app, "--steps", flags.steps, kNotNegative, "Training steps, in place of --epochs");
  add_choice(app, "--optimizer", flags.optimizer,
             {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"},
             "Optimizer (default adam)");
  add_number(app, "--lr", flags.lr, kAny,
             "Learning rate (default 0.004; sgd, momentum, nesterov 0.5, adagrad 0.05)");
  add_choice(app, "--lr-schedule", flags.lr_schedule, train::parse_schedule,
             {"constant", "exponential", "cosine"},
             "Learning-rate schedule (default cosine, down to 1/20 at the last step)");
  add_number(app, "--warmup", flags.warmup, kNotNegative,
             "Warm-up steps of the learning rate (default 1/20 of all, at most 100)");
  add_number(app, "--clip-norm", flags.clip_norm, kAny,
             "Clip gradients to this global norm, 0: off (default 1)");
  add_number(app, "--micro-batches", flags.micro_batches, kPositive,
             "Compute each step in this many parts of its batch, which saves memory (default 1)");
  add_number(app, "--valid-every", flags.valid_every, kNotNegative,
             "Training steps between validations (default 1/20 of all)");
  add_number(app, "--patience", flags.patience, kNotNegative,
             "Stop early after this many validations without a better one, 0: never (default 0)");
}

}  // namespace

void add_train(CLI::App& tool, TrainFlags& flags) {
  CLI::App* app = tool.add_subcommand("train", "Train a model on a text or a series");
  add_data_flags(app, flags.run);
  add_model_flags(app, flags.run);
  add_fit_flags(app, flags.run);
  app->add_option("--out", flags.run.out, "Folder for checkpoints and events")
      ->capture_default_str();
  app->add_flag("--resume", flags.run.resume, "Continue the run in --out where it stopped");
  add_number(app, "--save-steps", flags.run.save_steps, kNotNegative,
             "Also save every N training steps (0: off)");
  add_number(app, "--save-seconds", flags.run.save_seconds, {0.0, 1e9},
             "Save every N seconds (0: off)")
      ->default_str("20");
  add_number(app, "--keep", flags.run.keep, {0, 1000000}, "Checkpoints to keep, 0: all")
      ->default_str("5");
  add_number(
      app, "--recompute", flags.run.recompute, kNotNegative,
      "Keep less memory for gradients and compute the rest again, in chunks of N time steps, "
      "rounded up to a multiple of 32 (0: off)");
  add_choice(
      app, "--communicator", flags.communicator, {"none", "mpi", "nccl"},
      "mpi: train together with the processes that mpirun has started; nccl: those, and their "
      "gradients pass between GPUs; none: alone (default: mpi where mpirun has started several)");
  add_choice(app, "--reduction", flags.reduction, train::parse_reduction, {"exact", "fast"},
             "Sum of the processes' gradients: exact: the same bits for any number of processes; "
             "fast: in the order of MPI or NCCL (default exact)");
  app->add_flag(
      "--overlap", flags.run.overlap,
      "Send gradients of the last layers while those below are computed, by a thread more "
      "for each process");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

}  // namespace openrnn::cli
