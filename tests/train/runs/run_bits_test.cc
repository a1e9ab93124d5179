// The bits of whole runs: of their data's order, their first weights, masks, steps and validations.
// They are the same on every machine, so that a run of one version goes on in the next one.
// A change of bits that is meant raises kArithmeticVersion; the new hashes are those that the
// failing tests print.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "formats/temp_folder.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

std::string text_file(const TempFolder& folder) {
  const char* const words[] = {"the ", "c\xc3\xa4t ", "sat ", "on ", "a ", "mat,\n"};
  std::string path = folder / "text.txt";
  std::ofstream(path) << std::string_view(text_of_words(words, 1100, 0).train) << "\n";
  return path;
}

std::string table_file(const TempFolder& folder) {
  std::string path = folder / "table.csv";
  std::ofstream file(path);
  file << "a;day;b\n";
  for (int row = 0; row < 110; ++row) {
    file << row % 7 << ";x" << row << ';' << 0.25 * (row * row % 11) << '\n';
  }
  return path;
}

RunOptions text_options(const TempFolder& folder) {
  return {.out = folder / "out",
          .input = text_file(folder),
          .network = {{"layers", 2}, {"units", 7}, {"dropout", 0.25}, {"seed", 5}},
          .embedding = 4,
          .batch = 6,
          .seq_len = 7,
          .steps = 40,
          .valid_every = 16,
          .save_seconds = 0.0};
}

RunOptions series_options_of(const TempFolder& folder) {
  return {.out = folder / "out",
          .task = "series",
          .input = table_file(folder),
          .network = {{"units", 5}, {"dropout", 0.25}, {"seed", 6}},
          .batch = 9,
          .seq_len = 8,
          .steps = 30,
          .valid_every = 14,
          .save_seconds = 0.0};
}

/// Of everything in a checkpoint but the configuration, which holds paths.
std::string bits_of(const std::string& prefix) {
  const TensorBundleReader reader(prefix);
  std::string all;
  for (const TensorInfo& info : reader.tensors()) {
    if (info.name == "openrnn/config") continue;
    all += info.name + " " + info.dtype + " " + openrnn::to_string(info.shape) + "\n";
    const TensorValue value = reader.read_value(info.name);
    if (const auto* const array = std::get_if<Array>(&value)) {
      all.append(static_cast<const char*>(array->data()), array->size_bytes());
    } else {
      for (const std::string& text : std::get<StringTensor>(value).values) all += text;
    }
  }
  return fingerprint(all);
}

std::string bits_of_run(const RunOptions& options) {
  train::Run(options).train();
  return bits_of(options.out + "/model.ckpt-" + std::to_string(*options.steps));
}

struct Case {
  const char* name;
  std::function<void(RunOptions&)> change;
  const char* bits;
};

void expect_bits(const std::vector<Case>& cases, RunOptions (*options_of)(const TempFolder&)) {
  for (const Case& each : cases) {
    const TempFolder folder;
    RunOptions options = options_of(folder);
    each.change(options);
    EXPECT_EQ(bits_of_run(options), each.bits) << each.name;
  }
}

TEST(RunBits, OfTexts) {
  expect_bits({{"plain", [](auto&) {}, "cfd7673ff29c4465"},
               {"characters", [](auto& o) { o.level = TextLevel::kChar; }, "ce5bed4398a0dd9a"},
               {"one-hot", [](auto& o) { o.embedding = 0; }, "f695bcbfe1862c73"},
               {"gru", [](auto& o) { o.network["cell"] = "gru"; }, "ba6e0639cf1fa485"},
               {"rnn_tanh", [](auto& o) { o.network["cell"] = "rnn_tanh"; }, "0d9b20013f88daee"},
               {"float64", [](auto& o) { o.network["dtype"] = "float64"; }, "00542c848c3382ae"},
               {"float16", [](auto& o) { o.network["dtype"] = "float16"; }, "5b2d222c2aee8f46"},
               {"without dropout", [](auto& o) { o.network["dropout"] = 0.0; }, "37a63381cac7af2e"},
               {"another seed", [](auto& o) { o.network["seed"] = 6; }, "f8262c0aa737067c"},
               {"parts", [](auto& o) { o.micro_batches = 3; }, "a3269c4a8e9e6815"},
               {"clipped", [](auto& o) { o.clip_norm = 0.05; }, "b065438d20547428"},
               {"more held out", [](auto& o) { o.valid_fraction = 0.4; }, "89a279212c1d3b94"},
               {"short windows",
                [](auto& o) {
                  o.batch = 2;
                  o.seq_len = 3;
                },
                "e3d4ae9ec3a8da25"},
               {"a window of all", [](auto& o) { o.seq_len = 1000; }, "c001c7d0260437eb"}},
              text_options);
}

TEST(RunBits, OfOptimizersAndSchedules) {
  const auto with = [](const char* optimizer, ScheduleKind kind, std::int64_t warmup) {
    return [=](RunOptions& options) {
      options.optimizer = optimizer;
      options.lr_schedule = kind;
      options.warmup = warmup;
    };
  };
  expect_bits({{"sgd", with("sgd", ScheduleKind::kConstant, 0), "ae9aa1992a730fef"},
               {"momentum", with("momentum", ScheduleKind::kExponential, 3), "357cfb2cbbb0196d"},
               {"nesterov", with("nesterov", ScheduleKind::kCosine, 5), "d458a1120dd46c3a"},
               {"adagrad", with("adagrad", ScheduleKind::kConstant, 7), "5ceffb75205a9a2d"},
               {"rmsprop", with("rmsprop", ScheduleKind::kExponential, 0), "cc4ee0df83cf09a1"},
               {"adam", with("adam", ScheduleKind::kCosine, 39), "b8a54b97fc0d508b"}},
              text_options);
}

TEST(RunBits, OfSeries) {
  expect_bits({{"plain", [](auto&) {}, "55b9262045d9eee9"},
               {"one", [](auto& o) { o.target = "one"; }, "d7e4a3161a9625bc"},
               {"far", [](auto& o) { o.horizon = 4; }, "7fb236023d72a29a"},
               {"one column", [](auto& o) { o.columns = {{"b"}}; }, "2001b4d9fa7d5081"},
               {"other columns",
                [](auto& o) {
                  o.columns = {{"3", "a"}};
                },
                "5afe7c6475d496a3"},
               {"parts", [](auto& o) { o.micro_batches = 3; }, "6cb6bf5f04f1d0bc"},
               {"more held out", [](auto& o) { o.valid_fraction = 0.5; }, "a8e2867442059530"},
               {"float16", [](auto& o) { o.network["dtype"] = "float16"; }, "3474a5f4c6b9867f"},
               {"float64", [](auto& o) { o.network["dtype"] = "float64"; }, "f1db2468b7cbc302"}},
              series_options_of);
}

// A number of epochs is one of steps.
TEST(RunBits, OfStepsThatTheDataSay) {
  const TempFolder folder;
  RunOptions options = text_options(folder);
  options.steps = std::nullopt;
  options.valid_every = std::nullopt;
  options.epochs = 2;
  train::Run run(options);
  EXPECT_EQ(run.config().fit.steps, 32);
  EXPECT_EQ(run.config().fit.validate_every, 1);
  EXPECT_EQ(run.config().fit.schedule.warmup_steps, 1);
  run.train();
  EXPECT_EQ(bits_of(options.out + "/model.ckpt-" + std::to_string(run.step())), "f0ae47fa33acdee7");
}

TEST(RunBits, OfWhatATrainedModelSays) {
  const TempFolder folder;
  const RunOptions options = text_options(folder);
  train::Run(options).train();
  TrainedModel trained(options.out);
  const auto sample = [&](double temperature, std::int64_t top_k) {
    return fingerprint(sample_text(
        trained.model(), trained.vocabulary(),
        {.symbols = 60, .temperature = temperature, .top_k = top_k, .prime = "the ", .seed = 3}));
  };
  EXPECT_EQ(sample(1.0, 0), "52fee2bcce7489a0");
  EXPECT_EQ(sample(0.5, 0), "2da6df1ff0ba45a3");
  EXPECT_EQ(sample(1.0, 3), "831d48dd14bb97b9");
  EXPECT_EQ(sample(0.0, 0), "6c4e850ae181e43d");
  const auto hex = [](double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%a", value);
    return std::string(text);
  };
  std::string long_text;
  while (long_text.size() < 20000) long_text += read_file(*options.input);
  const auto bits = [&](std::string_view text, std::string_view before) {
    return hex(score_text(trained.model(), trained.vocabulary(), text, before).bits);
  };
  EXPECT_EQ(bits("the mat", ""), "0x1.a5ed7e2ce13e5p+4");
  EXPECT_EQ(bits("the m?t", "sat on "), "0x1.13eba269c8c11p+5");
  EXPECT_EQ(bits(long_text, ""), "0x1.30f98a0929a89p+16");
  EXPECT_EQ(bits(std::string_view(long_text).substr(0, 1700), "a"), "0x1.8c340651ac544p+12");
}

TEST(RunBits, OfForecasts) {
  const TempFolder folder;
  RunOptions options = series_options_of(folder);
  options.horizon = 2;
  train::Run run(options);
  run.train();
  const SeriesScore score = score_series(run.model(), *run.series());
  std::vector<double> all{score.model_total, score.last_value_total, score.seasonal_total};
  for (const auto* const each : {&score.model, &score.last_value, &score.seasonal}) {
    all.insert(all.end(), each->begin(), each->end());
  }
  const SeriesScaling& scaling = run.series()->scaling();
  const Array forecasts = forecast_series(run.model(), load_series(*options.input),
                                          series_options(run.config()), scaling, 5);
  for (const double value : forecasts.as<double>()) all.push_back(value);
  EXPECT_EQ(score.season, 7);
  EXPECT_EQ(fingerprint({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double)}),
            "646435ee83f8d436");
}

}  // namespace
}  // namespace openrnn::train
