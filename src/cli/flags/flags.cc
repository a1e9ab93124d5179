// All flags of all subcommands: the reference of what the tool takes.
#include "cli/flags.h"

#include <algorithm>
#include <iostream>

#include "cli/flags/model_files.h"
#include "cli/flags/network_options.h"
#include "cli/flags/options.h"
#include "openrnn/version.h"

namespace openrnn::cli {
namespace {

void add_threads(CLI::App* app, int& threads) {
  add_number(app, "--threads", threads, {1, 1024},
             "Threads to use; results do not depend on it (default: all of this machine's)");
}

void add_device(CLI::App* app, std::string& device) {
  app->add_option("--device", device, "cpu, gpu:0, gpu:1, ... (default: OPENRNN_DEVICE, else cpu)");
}

void add_arithmetic(CLI::App* app, ArithmeticFlags& flags, const std::string& otherwise) {
  add_choice(app, "--math", flags.math, choices_of(rnn_field("math")),
             "Arithmetic of the recurrent products (default " + otherwise + ")");
  add_choice(app, "--weights-dtype", flags.weights_dtype, choices_of(rnn_field("weights_dtype")),
             "Storage of the recurrent weights (default none: the model's dtype)");
}

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
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_generate(CLI::App& tool, GenerateFlags& flags) {
  CLI::App* app = tool.add_subcommand("generate", "Generate text from a trained model");
  app->add_option("run", flags.run, "Folder of a run, or a checkpoint prefix")->required();
  add_number(app, "--length", flags.length, kNotNegative, "Symbols to generate")
      ->default_str("500");
  add_number(app, "--temperature", flags.temperature, kAny,
             "Sampling temperature, 0: always the most probable symbol")
      ->default_str("0.8");
  add_number(app, "--top-k", flags.top_k, kNotNegative,
             "Sample from the top k symbols, 0: from all")
      ->default_str("0");
  app->add_option("--prime", flags.prime, "Text that primes the model (default: a newline)");
  add_number(app, "--seed", flags.seed, {}, "Sampling seed")->default_str("0");
  add_arithmetic(app, flags.arithmetic, "the run's");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_eval(CLI::App& tool, EvalFlags& flags) {
  CLI::App* app = tool.add_subcommand("eval", "Score a trained model on a file");
  app->add_option("run", flags.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--input", flags.input, "The text or CSV file")->required();
  app->add_option("--context", flags.context, "A text that precedes the input, not scored");
  add_arithmetic(app, flags.arithmetic, "the run's");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_forecast(CLI::App& tool, ForecastFlags& flags) {
  CLI::App* app = tool.add_subcommand("forecast", "Print the rows that follow a series");
  app->add_option("run", flags.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--input", flags.input, "The CSV file, up to now")->required();
  add_number(app, "--horizon", flags.horizon, kPositive, "Rows to forecast (default: the run's)");
  app->add_flag("--plot", flags.plot, "Also draw them behind the last rows, as characters");
  add_arithmetic(app, flags.arithmetic, "the run's");
  add_device(app, flags.device);
  add_threads(app, flags.threads);
}

void add_others(CLI::App& tool, CheckCellsFlags& cells, PlotFlags& plot) {
  CLI::App* app = tool.add_subcommand("check-cells",
                                      "Restore a text model in the compatible cells and compare");
  app->add_option("run", cells.run, "Folder of a run, or a checkpoint prefix")->required();
  app->add_option("--input", cells.input, "A text, of which both read the beginning")->required();
  add_threads(app, cells.threads);

  app = tool.add_subcommand("plot", "Draw a run's loss curves as SVG");
  app->add_option("run", plot.run, "Folder of a run")->required();
  app->add_option("--output", plot.output, "The SVG file")->required();
}

void add_bench(CLI::App& tool, BenchFlags& flags) {
  CLI::App* app =
      tool.add_subcommand("bench", "Measure the recurrent layers against this machine's peak");
  app->add_option("--json", flags.json, "Write the figures to this file, too");
  app->add_option("--only", flags.only,
                  "Only configurations whose name contains this, such as 'GRU L1'");
  add_number(app, "--seconds", flags.seconds, {0.01, 3600.0}, "Approximate seconds for each line")
      ->default_str("1, with --company 10");
  app->add_flag("--company", flags.company,
                "With a busy process on one of the CPUs: one thread against --threads");
  add_arithmetic(app, flags.arithmetic, "float32");
  add_device(app, flags.device);
  CLI::Option* cells = app->add_flag(
      "--cells", flags.cells, "Cells with options against cuDNN's cell of the same size, float32");
  CLI::Option* gradients = app->add_flag(
      "--gradients", flags.gradients,
      "Training with save=inputs, and gradients of gradients, against plain training");
  for (const char* other : {"--company", "--seconds", "--math", "--weights-dtype", "--device"}) {
    cells->excludes(other);
    gradients->excludes(other);
  }
  gradients->excludes("--cells");
  CLI::Option* load = app->add_option(
      "--load", flags.load,
      "Loading of model files, which are written to this folder: rate against a plain read, memory "
      "against the file's size");
  for (CLI::Option* other : {cells, gradients}) load->excludes(other);
  for (const char* other : {"--company", "--seconds", "--math", "--weights-dtype", "--device"}) {
    load->excludes(other);
  }
  add_number(app, "--megabytes", flags.megabytes, {1, 1 << 20}, "Size of the files of --load")
      ->default_str("1024")
      ->needs(load);
  add_threads(app, flags.threads);
}

std::vector<std::string> subcommands(CLI::App& tool) {
  std::vector<std::string> names;
  for (const CLI::App* one : tool.get_subcommands([](CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

/// Throws: ArgumentError for a first word that is no subcommand; CLI11 would report it as an
/// unexpected argument.
void require_subcommand(CLI::App& tool, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "-";
  const std::vector<std::string> known = subcommands(tool);
  if (word.starts_with('-') || std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::optional<std::string> meant = nearest(word, known);
  std::string expected = meant ? *meant : "one of";
  for (std::size_t i = 0; !meant && i < known.size(); ++i) {
    expected.append(i > 0 ? ", " : " ").append(known[i]);
  }
  throw ArgumentError("[openrnn] '" + excerpt(word) + "' is no subcommand, expected " + expected +
                      " (see openrnn --help)");
}

/// The error in one line: CLI11 adds hints on further lines, and repeats all arguments.
std::string complaint(const CLI::App* chosen, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    return text.substr(0, text.find('\n'));
  }
  const std::vector<std::string> extras = chosen->remaining();
  const std::string first = extras.empty() ? "" : extras.front();
  std::vector<std::string> known;
  for (const CLI::Option* option : chosen->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::optional<std::string> meant = nearest(first.substr(0, first.find('=')), known);
  return "'" + excerpt(first) + "' is not expected here" + (meant ? ", but " + *meant + " is" : "");
}

}  // namespace

std::optional<Flags> parse_flags(int argc, char** argv) {
  TrainFlags train;
  GenerateFlags generate;
  EvalFlags eval;
  ForecastFlags forecast;
  InspectFlags inspect;
  CheckCellsFlags cells;
  PlotFlags plot;
  BenchFlags bench;
  ConvertFlags convert;
  RunFlags run;
  CLI::App tool("OpenRNN: train and run recurrent networks", "openrnn");
  tool.require_subcommand(1);
  tool.set_version_flag("--version", "openrnn " OPENRNN_VERSION);
  add_train(tool, train);
  add_generate(tool, generate);
  add_eval(tool, eval);
  add_forecast(tool, forecast);
  add_inspect(tool, inspect);
  add_convert(tool, convert);
  add_run(tool, run);
  add_others(tool, cells, plot);
  tool.add_subcommand("doctor",
                      "Show what this machine and build have: engines, threads, libraries");
  add_bench(tool, bench);
  require_subcommand(tool, argc, argv);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    tool.exit(asked, std::cout, std::cerr);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    const auto chosen = tool.get_subcommands();
    const CLI::App* app = chosen.empty() ? &tool : chosen.front();
    const std::string& name = app->get_name();
    throw ArgumentError("[" + name + "] " + complaint(app, error) + " (see openrnn " +
                        (chosen.empty() ? "" : name + " ") + "--help)");
  }
  const std::string name = tool.get_subcommands().front()->get_name();
  if (name == "train") return train;
  if (name == "generate") return generate;
  if (name == "eval") return eval;
  if (name == "forecast") return forecast;
  if (name == "inspect") return inspect;
  if (name == "check-cells") return cells;
  if (name == "plot") return plot;
  if (name == "bench") return bench;
  if (name == "convert") return convert;
  if (name == "run") return run;
  return DoctorFlags{};
}

}  // namespace openrnn::cli
