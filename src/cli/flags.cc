// All flags of all subcommands: the reference of what the tool takes.
#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "openrnn/base.h"

namespace openrnn::cli {
namespace {

// CLI11 cannot parse into std::optional of a vector, and its own type checks give long sentences.
template <class T>
CLI::Option* add(CLI::App* app, const std::string& name, std::optional<T>& value,
                 const std::string& help) {
  return app->add_option_function<T>(
      name, [&value](const T& given) { value = given; }, help);
}

const CLI::Range kPositive(std::int64_t{1}, std::int64_t{1} << 40);
const CLI::Range kNotNegative(std::int64_t{0}, std::int64_t{1} << 40);

void add_threads(CLI::App* app, int& threads) {
  app->add_option("--threads", threads,
                  "Threads to use; no result depends on it (default: all of this machine's)")
      ->check(CLI::Range(1, 1024));
}

void add_device(CLI::App* app, std::string& device) {
  app->add_option("--device", device, "cpu, gpu:0, gpu:1, ... (default: OPENRNN_DEVICE, else cpu)");
}

void add_math(CLI::App* app, std::optional<std::string>& math, const std::string& otherwise) {
  add(app, "--math", math, "Arithmetic of the recurrent products (default " + otherwise + ")")
      ->check(CLI::IsMember({"float32", "bf16", "bf16x3", "tf32", "fp16"}));
}

void add_arithmetic(CLI::App* app, ArithmeticFlags& flags, const std::string& otherwise) {
  add_math(app, flags.math, otherwise);
  add(app, "--weights-dtype", flags.weights_dtype,
      "What recurrent weights are stored as (default none: as the model's dtype)")
      ->check(CLI::IsMember({"none", "float16", "bfloat16", "int8"}));
}

void add_data_flags(CLI::App* app, TrainFlags& flags) {
  add(app, "--task", flags.task, "text: next-symbol model; series: forecast (default text)")
      ->check(CLI::IsMember({"text", "series"}));
  add(app, "--input", flags.input, "The text or the CSV file to train on");
  add(app, "--valid", flags.valid, "A text to validate on (default: the last lines of the input)");
  add(app, "--valid-fraction", flags.valid_fraction,
      "Part of the input held out (default 0.05 of a text, 0.2 of a series)");
  add(app, "--level", flags.level, "Symbols of a text (default byte)")
      ->check(CLI::IsMember({"byte", "char"}));
  add(app, "--columns", flags.columns, "Columns of a series, by name or number (default: all)")
      ->delimiter(',');
  add(app, "--horizon", flags.horizon, "Rows ahead to forecast (default 1)")->check(kPositive);
  add(app, "--target", flags.target,
      "sequence: a forecast after each row of a window; one: after its last (default sequence)")
      ->check(CLI::IsMember({"one", "sequence"}));
}

void add_model_flags(CLI::App* app, TrainFlags& flags) {
  add(app, "--cell", flags.cell, "Recurrent cell (default lstm)")
      ->check(CLI::IsMember({"lstm", "gru", "rnn_tanh", "rnn_relu"}));
  add(app, "--layers", flags.layers, "Recurrent layers (default 1)")->check(kPositive);
  add(app, "--units", flags.units, "Units of each layer (default 256; series 32)")
      ->check(kPositive);
  add(app, "--embedding", flags.embedding, "Width of the embedding, 0 for one-hot (default 64)")
      ->check(kNotNegative);
  add(app, "--dropout", flags.dropout, "Rate between layers and before the last (default 0)");
  add(app, "--dtype", flags.dtype, "float16, float32 or float64 (default float32)")
      ->check(CLI::IsMember({"float16", "float32", "float64"}));
  add_math(app, flags.math, "float32");
  add(app, "--seed", flags.seed, "Of everything random (default 0)")->check(kNotNegative);
}

void add_fit_flags(CLI::App* app, TrainFlags& flags) {
  add(app, "--batch", flags.batch, "Parallel streams, or windows of a series (default 32)")
      ->check(kPositive);
  add(app, "--seq-len", flags.seq_len, "Steps of a window (default 100; series 24)")
      ->check(kPositive);
  add(app, "--epochs", flags.epochs, "Passes over the data (default: 10, but 500 to 20000 steps)")
      ->check(kPositive);
  add(app, "--steps", flags.steps, "Steps, in place of --epochs")->check(kNotNegative);
  add(app, "--optimizer", flags.optimizer, "Default adam")
      ->check(CLI::IsMember({"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"}));
  add(app, "--lr", flags.lr, "Learning rate (default 0.004; sgd and its kin 0.5, adagrad 0.05)");
  add(app, "--lr-schedule", flags.lr_schedule, "Default cosine, down to 1/20 at the last step")
      ->check(CLI::IsMember({"constant", "exponential", "cosine"}));
  add(app, "--warmup", flags.warmup, "Steps in which the rate rises (default 1/20, at most 100)")
      ->check(kNotNegative);
  add(app, "--clip-norm", flags.clip_norm, "Global norm to clip gradients to, 0: off (default 1)");
  add(app, "--valid-every", flags.valid_every, "Steps between validations (default 1/20 of all)")
      ->check(kNotNegative);
  add(app, "--patience", flags.patience,
      "Validations without a better one after which to stop, 0: never (default 0)")
      ->check(kNotNegative);
}

void add_train(CLI::App& tool, TrainFlags& flags) {
  CLI::App* app = tool.add_subcommand("train", "Train a model on a text or a series");
  add_data_flags(app, flags);
  add_model_flags(app, flags);
  add_fit_flags(app, flags);
  app->add_option("--out", flags.out, "Folder for checkpoints and events")->capture_default_str();
  app->add_flag("--resume", flags.resume, "Go on where the run in --out stopped");
  app->add_option("--save-steps", flags.save_steps, "Also save every so many steps (0: do not)")
      ->check(kNotNegative);
  app->add_option("--save-seconds", flags.save_seconds, "Save every so many seconds (0: do not)")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app->add_option("--keep", flags.keep, "Checkpoints to keep, 0: all")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_generate(CLI::App& tool, GenerateFlags& flags) {
  CLI::App* app = tool.add_subcommand("generate", "Let a trained text model write");
  app->add_option("run", flags.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--length", flags.length, "Symbols to write")
      ->check(kNotNegative)
      ->capture_default_str();
  app->add_option("--temperature", flags.temperature, "0: always the likeliest symbol")
      ->capture_default_str();
  app->add_option("--top-k", flags.top_k, "Only the so many likeliest symbols, 0: all")
      ->check(kNotNegative)
      ->capture_default_str();
  app->add_option("--prime", flags.prime, "What the text begins with (default: a new line)");
  app->add_option("--seed", flags.seed, "Of the draws")->capture_default_str();
  add_arithmetic(app, flags.arithmetic, "the run's");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_eval(CLI::App& tool, EvalFlags& flags) {
  CLI::App* app = tool.add_subcommand("eval", "Score a trained model on a file");
  app->add_option("run", flags.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--input", flags.input, "The text or CSV file")->required();
  app->add_option("--context", flags.context, "A text that stands before the input, not scored");
  add_arithmetic(app, flags.arithmetic, "the run's");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_others(CLI::App& tool, InspectFlags& inspect, CheckCellsFlags& cells, PlotFlags& plot) {
  CLI::App* app = tool.add_subcommand("inspect", "What tensors and networks a checkpoint holds");
  app->add_option("checkpoint", inspect.checkpoint, "A checkpoint prefix, or a run's folder")
      ->required();

  app = tool.add_subcommand("check-cells",
                            "Restore a text model in the compatible cells and compare");
  app->add_option("run", cells.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--input", cells.input, "A text whose beginning both read")->required();
  add_threads(app, cells.threads);

  app = tool.add_subcommand("plot", "Draw a run's loss curves as SVG");
  app->add_option("run", plot.run, "Folder of a run")->required();
  app->add_option("--output", plot.output, "The SVG file")->required();
}

void add_bench(CLI::App& tool, BenchFlags& flags) {
  CLI::App* app =
      tool.add_subcommand("bench", "Measure the recurrent layers against this machine's peak");
  app->add_option("--json", flags.json, "Write the figures to this file, too");
  app->add_option("--only", flags.only, "Only configurations that contain this, such as 'GRU L1'");
  app->add_option("--seconds", flags.seconds, "About so long for each line")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  add_arithmetic(app, flags.arithmetic, "float32");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

/// The first line: CLI11 adds hints on further ones.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::optional<Flags> parse_flags(int argc, char** argv) {
  TrainFlags train;
  GenerateFlags generate;
  EvalFlags eval;
  InspectFlags inspect;
  CheckCellsFlags cells;
  PlotFlags plot;
  BenchFlags bench;
  CLI::App tool("OpenRNN: recurrent networks, trained and run", "openrnn");
  tool.require_subcommand(1);
  tool.set_version_flag("--version", "openrnn 0.1.0");
  add_train(tool, train);
  add_generate(tool, generate);
  add_eval(tool, eval);
  add_others(tool, inspect, cells, plot);
  tool.add_subcommand("doctor", "What this machine and build have: engines, threads, libraries");
  add_bench(tool, bench);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    tool.exit(asked, std::cout, std::cerr);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const auto chosen = tool.get_subcommands();
    const std::string name = chosen.empty() ? "openrnn" : chosen.front()->get_name();
    throw ArgumentError("[" + name + "] " + first_line(error.what()) + " (see openrnn " +
                        (chosen.empty() ? "" : name + " ") + "--help)");
  }
  const std::string name = tool.get_subcommands().front()->get_name();
  if (name == "train") return train;
  if (name == "generate") return generate;
  if (name == "eval") return eval;
  if (name == "inspect") return inspect;
  if (name == "check-cells") return cells;
  if (name == "plot") return plot;
  if (name == "bench") return bench;
  return DoctorFlags{};
}

}  // namespace openrnn::cli
