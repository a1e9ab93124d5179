// All flags of all subcommands: the reference of what the tool takes.
#include "cli/flags.h"

#include <algorithm>
#include <iostream>

#include "cli/flags/model_files.h"
#include "cli/flags/network_options.h"
#include "cli/flags/options.h"
#include "cli/flags/train_flags.h"
#include "openrnn/version.h"

namespace openrnn::cli {
namespace {

void add_arithmetic(CLI::App* app, ArithmeticFlags& flags, const std::string& otherwise) {
  add_choice(app, "--math", flags.math, choices_of(rnn_field("math")),
             "Arithmetic of the recurrent products (default " + otherwise + ")");
  add_choice(app, "--weights-dtype", flags.weights_dtype, choices_of(rnn_field("weights_dtype")),
             "Storage of the recurrent weights (default none: the model's dtype)");
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
