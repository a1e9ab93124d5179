// Where each word of a command line goes: every flag of every subcommand to its own place.
#include "cli/flags.h"

#include <gtest/gtest.h>

#include "openrnn/spec_fields.h"
#include "support/expect_error.h"
#include "train/run/network_options.h"

namespace openrnn::cli {
namespace {

using Words = std::vector<std::string>;
using train::NetworkOption;
using train::RunOptions;

template <class OfOne>
OfOne parsed(const std::string& subcommand, Words words = {}) {
  words.insert(words.begin(), {"openrnn", subcommand});
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  return std::get<OfOne>(parse_flags(static_cast<int>(all.size()), all.data()).value());
}

TEST(TrainFlags, AreUnsetUnlessTheyAreGiven) {
  const auto flags = parsed<TrainFlags>("train");
  const RunOptions& run = flags.run;
  EXPECT_FALSE(run.task || run.input || run.valid || run.valid_fraction || run.level ||
               run.columns || run.horizon || run.target || run.embedding || run.batch ||
               run.seq_len || run.epochs || run.steps || run.optimizer || run.lr ||
               run.lr_schedule || run.warmup || run.clip_norm || run.micro_batches ||
               run.valid_every || run.patience);
  EXPECT_TRUE(run.network.empty());
  EXPECT_EQ(run.out, "out");
  EXPECT_FALSE(run.resume || run.overlap);
  EXPECT_EQ(run.save_steps, 0);
  EXPECT_EQ(run.save_seconds, 20.0);
  EXPECT_EQ(run.keep, 5);
  EXPECT_EQ(run.recompute, 0);
  EXPECT_FALSE(flags.communicator || flags.reduction);
  EXPECT_EQ(flags.device, "");
  EXPECT_EQ(flags.threads, 0);
}

TEST(TrainFlags, OfDataAndModelHaveTheirPlaces) {
  const auto run = parsed<TrainFlags>(
      "train",
      {"--task",      "series", "--input",   "a",   "--valid",   "b", "--valid-fraction", "0.3",
       "--level",     "char",   "--columns", "x,y", "--horizon", "2", "--target",         "one",
       "--embedding", "3",      "--out",     "c",   "--device",  "d", "--threads",        "4"});
  EXPECT_EQ(run.run.task, "series");
  EXPECT_EQ(run.run.input, "a");
  EXPECT_EQ(run.run.valid, "b");
  EXPECT_EQ(run.run.valid_fraction, 0.3);
  EXPECT_EQ(run.run.level, train::TextLevel::kChar);
  EXPECT_EQ(run.run.columns, (Words{"x", "y"}));
  EXPECT_EQ(run.run.horizon, 2);
  EXPECT_EQ(run.run.target, "one");
  EXPECT_EQ(run.run.embedding, 3);
  EXPECT_EQ(run.run.out, "c");
  EXPECT_EQ(run.device, "d");
  EXPECT_EQ(run.threads, 4);
  EXPECT_TRUE(run.run.network.empty());
  EXPECT_FALSE(run.run.resume || run.run.overlap || run.run.batch || run.run.steps);
}

TEST(TrainFlags, OfTheFitHaveTheirPlaces) {
  const auto flags = parsed<TrainFlags>(
      "train", {"--batch",         "2",           "--seq-len",      "3",    "--epochs",    "4",
                "--steps",         "5",           "--optimizer",    "sgd",  "--lr",        "0.25",
                "--lr-schedule",   "exponential", "--warmup",       "6",    "--clip-norm", "0.5",
                "--micro-batches", "7",           "--valid-every",  "8",    "--patience",  "9",
                "--save-steps",    "10",          "--save-seconds", "11.5", "--keep",      "12",
                "--recompute",     "13",          "--communicator", "nccl", "--reduction", "fast"});
  const RunOptions& run = flags.run;
  EXPECT_EQ(run.batch, 2);
  EXPECT_EQ(run.seq_len, 3);
  EXPECT_EQ(run.epochs, 4);
  EXPECT_EQ(run.steps, 5);
  EXPECT_EQ(run.optimizer, "sgd");
  EXPECT_EQ(run.lr, 0.25);
  EXPECT_EQ(run.lr_schedule, train::ScheduleKind::kExponential);
  EXPECT_EQ(run.warmup, 6);
  EXPECT_EQ(run.clip_norm, 0.5);
  EXPECT_EQ(run.micro_batches, 7);
  EXPECT_EQ(run.valid_every, 8);
  EXPECT_EQ(run.patience, 9);
  EXPECT_EQ(run.save_steps, 10);
  EXPECT_EQ(run.save_seconds, 11.5);
  EXPECT_EQ(run.keep, 12);
  EXPECT_EQ(run.recompute, 13);
  EXPECT_EQ(flags.communicator, "nccl");
  EXPECT_EQ(flags.reduction, train::Reduction::kFast);
  EXPECT_FALSE(run.resume || run.overlap || run.embedding || run.horizon);
}

// Each alone: beside the other one a wrong place would not be seen.
TEST(TrainFlags, WithoutAValueSetThemselvesAlone) {
  const RunOptions resume = parsed<TrainFlags>("train", {"--resume"}).run;
  EXPECT_TRUE(resume.resume && !resume.overlap);
  const RunOptions overlap = parsed<TrainFlags>("train", {"--overlap"}).run;
  EXPECT_TRUE(overlap.overlap && !overlap.resume);
}

TEST(TrainFlags, TakeEveryWordOfTheirChoices) {
  const auto run = [](const std::string& flag, const std::string& word) {
    return parsed<TrainFlags>("train", {flag, word});
  };
  for (const char* task : {"text", "series"}) EXPECT_EQ(run("--task", task).run.task, task);
  for (const char* target : {"one", "sequence"}) {
    EXPECT_EQ(run("--target", target).run.target, target);
  }
  for (const char* optimizer : {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"}) {
    EXPECT_EQ(run("--optimizer", optimizer).run.optimizer, optimizer);
  }
  EXPECT_EQ(run("--level", "byte").run.level, train::TextLevel::kByte);
  EXPECT_EQ(run("--lr-schedule", "constant").run.lr_schedule, train::ScheduleKind::kConstant);
  EXPECT_EQ(run("--lr-schedule", "cosine").run.lr_schedule, train::ScheduleKind::kCosine);
  for (const char* name : {"none", "mpi", "nccl"}) {
    EXPECT_EQ(run("--communicator", name).communicator, name);
  }
  EXPECT_EQ(run("--reduction", "exact").reduction, train::Reduction::kExact);
}

/// What is typed for an option, and what a run is given for it.
std::vector<std::pair<std::string, FieldValue>> values_of(const NetworkOption& option) {
  std::vector<std::pair<std::string, FieldValue>> values;
  switch (option.field->type) {
    case FieldType::kInteger:
      return {{"3", std::int64_t{3}}};
    case FieldType::kNumber:
      return {{"0.375", 0.375}, {"-2", -2.0}};
    case FieldType::kPair:
      return {{"-2,0.5", std::array{-2.0, 0.5}}, {"1.5", 1.5}};
    case FieldType::kActivation:
      return {{"relu", std::string("relu")}, {"none", std::string("none")}};
    case FieldType::kBool:
      return {{"true", true}, {"false", false}};
    case FieldType::kDType:
      for (const char* name : {"float16", "bfloat16", "float32", "float64"}) {
        values.emplace_back(name, std::string(name));
      }
      return values;
    case FieldType::kWord:
      break;
  }
  for (const std::string_view word : option.field->choices) {
    values.emplace_back(word, std::string(word));
  }
  return values;
}

TEST(TrainFlags, OfTheNetworkAreItsOptions) {
  using Network = std::map<std::string, FieldValue>;
  Words all;
  Network expected;
  for (const NetworkOption& option : train::network_options()) {
    const auto values = values_of(option);
    ASSERT_FALSE(values.empty()) << option.name;
    for (const auto& [typed, value] : values) {
      const auto flags = parsed<TrainFlags>("train", {flag_of(option.name) + "=" + typed});
      EXPECT_EQ(flags.run.network, (Network{{option.name, value}})) << option.name << typed;
    }
    all.push_back(flag_of(option.name) + "=" + values.back().first);
    expected[option.name] = values.back().second;
    if (option.field->type != FieldType::kBool) continue;
    const auto alone = parsed<TrainFlags>("train", {flag_of(option.name)});
    EXPECT_EQ(alone.run.network, (Network{{option.name, true}}));
  }
  EXPECT_EQ(parsed<TrainFlags>("train", all).run.network, expected);
}

TEST(Flags, OfAnOptionHaveDashes) {
  EXPECT_EQ(flag_of("units"), "--units");
  EXPECT_EQ(flag_of("a_b_c"), "--a-b-c");
}

TEST(Flags, OfGenerate) {
  const auto plain = parsed<GenerateFlags>("generate", {"r"});
  EXPECT_EQ(plain.run, "r");
  EXPECT_EQ(plain.length, 500);
  EXPECT_EQ(plain.temperature, 0.8);
  EXPECT_EQ(plain.top_k, 0);
  EXPECT_EQ(plain.prime, "");
  EXPECT_EQ(plain.seed, 0U);
  EXPECT_EQ(plain.device, "");
  EXPECT_EQ(plain.threads, 0);
  EXPECT_FALSE(plain.arithmetic.math || plain.arithmetic.weights_dtype);
  const auto given = parsed<GenerateFlags>(
      "generate", {"r", "--length", "2", "--temperature", "0.5", "--top-k", "3", "--prime", "p",
                   "--seed", "18446744073709551615", "--math", "bf16x3", "--weights-dtype", "int8",
                   "--device", "d", "--threads", "4"});
  EXPECT_EQ(given.length, 2);
  EXPECT_EQ(given.temperature, 0.5);
  EXPECT_EQ(given.top_k, 3);
  EXPECT_EQ(given.prime, "p");
  EXPECT_EQ(given.seed, ~std::uint64_t{0});
  EXPECT_EQ(given.arithmetic.math, "bf16x3");
  EXPECT_EQ(given.arithmetic.weights_dtype, "int8");
  EXPECT_EQ(given.device, "d");
  EXPECT_EQ(given.threads, 4);
}

TEST(Flags, OfEvalAndForecast) {
  const Words more{"r",    "--input",  "i", "--math",    "tf32", "--weights-dtype",
                   "none", "--device", "d", "--threads", "4"};
  const auto expect = [](const auto& flags) {
    EXPECT_EQ(flags.run, "r");
    EXPECT_EQ(flags.input, "i");
    EXPECT_EQ(flags.arithmetic.math, "tf32");
    EXPECT_EQ(flags.arithmetic.weights_dtype, "none");
    EXPECT_EQ(flags.device, "d");
    EXPECT_EQ(flags.threads, 4);
  };
  const auto eval = parsed<EvalFlags>("eval", more);
  const auto forecast = parsed<ForecastFlags>("forecast", more);
  expect(eval);
  expect(forecast);
  EXPECT_EQ(eval.context, "");
  EXPECT_FALSE(forecast.horizon || forecast.plot);
  EXPECT_EQ(parsed<EvalFlags>("eval", {"r", "--input", "i", "--context", "c"}).context, "c");
  const Words needed{"r", "--input", "i"};
  EXPECT_EQ(parsed<EvalFlags>("eval", needed).threads, 0);
  EXPECT_EQ(parsed<ForecastFlags>("forecast", {"r", "--input", "i", "--horizon", "7"}).horizon, 7);
  EXPECT_TRUE(parsed<ForecastFlags>("forecast", {"r", "--input", "i", "--plot"}).plot);
}

TEST(Flags, OfTheFilesThatAreReadAndWritten) {
  const auto cells = parsed<CheckCellsFlags>("check-cells", {"r", "--input", "i"});
  EXPECT_EQ(cells.run, "r");
  EXPECT_EQ(cells.input, "i");
  EXPECT_EQ(cells.threads, 0);
  const Words three{"r", "--input", "i", "--threads", "3"};
  EXPECT_EQ(parsed<CheckCellsFlags>("check-cells", three).threads, 3);
  const auto plot = parsed<PlotFlags>("plot", {"r", "--output", "o"});
  EXPECT_EQ(plot.run, "r");
  EXPECT_EQ(plot.output, "o");
  parsed<DoctorFlags>("doctor");
  const auto run = parsed<RunFlags>(
      "run", {"m", "--input", "i", "--output", "o", "--network", "n", "--lengths", "l", "--state",
              "s", "--stream", "6", "--math", "bf16", "--threads", "4"});
  EXPECT_EQ(run.model, "m");
  EXPECT_EQ(run.input, "i");
  EXPECT_EQ(run.output, "o");
  EXPECT_EQ(run.network, "n");
  EXPECT_EQ(run.lengths, "l");
  EXPECT_EQ(run.state, "s");
  EXPECT_EQ(run.stream, 6);
  EXPECT_EQ(run.math, "bf16");
  EXPECT_EQ(run.threads, 4);
  EXPECT_FALSE(run.batch_major);
  const auto plain = parsed<RunFlags>("run", {"m", "--input=i", "--output=o", "--batch-major"});
  EXPECT_TRUE(plain.batch_major);
  EXPECT_EQ(plain.network + plain.lengths + plain.state, "");
  EXPECT_FALSE(plain.stream || plain.math || plain.threads);
}

TEST(Flags, OfBench) {
  const auto plain = parsed<BenchFlags>("bench");
  EXPECT_EQ(plain.json + plain.only + plain.device + plain.load, "");
  EXPECT_FALSE(plain.company || plain.cells || plain.gradients || plain.seconds);
  EXPECT_FALSE(plain.arithmetic.math || plain.arithmetic.weights_dtype);
  EXPECT_EQ(plain.threads, 0);
  EXPECT_EQ(plain.megabytes, 1024);
  const auto given = parsed<BenchFlags>(
      "bench", {"--json", "j", "--only", "o", "--seconds", "0.5", "--company", "--math", "bf16",
                "--weights-dtype", "bfloat16", "--device", "d", "--threads", "3"});
  EXPECT_EQ(given.json, "j");
  EXPECT_EQ(given.only, "o");
  EXPECT_EQ(given.seconds, 0.5);
  EXPECT_TRUE(given.company && !given.cells && !given.gradients);
  EXPECT_EQ(given.arithmetic.math, "bf16");
  EXPECT_EQ(given.arithmetic.weights_dtype, "bfloat16");
  EXPECT_EQ(given.device, "d");
  EXPECT_EQ(given.threads, 3);
  const auto cells = parsed<BenchFlags>("bench", {"--cells"});
  EXPECT_TRUE(cells.cells && !cells.company && !cells.gradients);
  const auto gradients = parsed<BenchFlags>("bench", {"--gradients"});
  EXPECT_TRUE(gradients.gradients && !gradients.company && !gradients.cells);
  const auto load = parsed<BenchFlags>("bench", {"--load", "f", "--megabytes", "7"});
  EXPECT_EQ(load.load, "f");
  EXPECT_EQ(load.megabytes, 7);
}

void expect_hints(const MappingHints& hints) {
  EXPECT_EQ(hints.mode, RnnMode::kRnnRelu);
  EXPECT_EQ(hints.reset_after, false);
  EXPECT_TRUE(hints.recurrent_activation == parse_cell_activation("hard_sigmoid"));
  EXPECT_EQ(hints.forget_bias, 0.5);
  ASSERT_TRUE(hints.network);
  EXPECT_EQ(hints.network->mode, RnnMode::kGru);
  EXPECT_EQ(hints.network->num_units, 7);
  EXPECT_EQ(hints.network->input_size, 5);
}

TEST(Flags, OfModelFilesHaveHints) {
  const Words hints{"--mode",
                    "rnn_relu",
                    "--reset-after",
                    "false",
                    "--recurrent-activation",
                    "hard_sigmoid",
                    "--forget-bias",
                    "0.5",
                    "--opaque-network",
                    R"({"rnn_mode": "gru", "num_units": 7, "input_size": 5})"};
  const auto with = [&](Words words) {
    words.insert(words.end(), hints.begin(), hints.end());
    return words;
  };
  const auto inspect = parsed<InspectFlags>("inspect", with({"c"}));
  EXPECT_EQ(inspect.checkpoint, "c");
  EXPECT_FALSE(inspect.fast || inspect.json);
  expect_hints(inspect.hints);
  const auto convert = parsed<ConvertFlags>("convert", with({"a", "b", "--to", "torch"}));
  EXPECT_EQ(convert.in, "a");
  EXPECT_EQ(convert.out, "b");
  EXPECT_EQ(convert.to, "torch");
  expect_hints(convert.hints);
  expect_hints(parsed<RunFlags>("run", with({"m", "--input", "i", "--output", "o"})).hints);
  const auto fast = parsed<InspectFlags>("inspect", {"c", "--fast"});
  EXPECT_TRUE(fast.fast && !fast.json);
  const auto json = parsed<InspectFlags>("inspect", {"c", "--json"});
  EXPECT_TRUE(json.json && !json.fast);
  const MappingHints& none = json.hints;
  EXPECT_FALSE(none.mode || none.reset_after || none.recurrent_activation || none.forget_bias ||
               none.network);
  EXPECT_EQ(parsed<InspectFlags>("inspect", {"c", "--reset-after=true"}).hints.reset_after, true);
  EXPECT_EQ(error_of<ArgumentError>([] {
              parsed<InspectFlags>("inspect", {"c", "--reset-after=yes"});
            }),
            "[inspect] --reset-after 'yes', expected true or false");
}

}  // namespace
}  // namespace openrnn::cli
