// The bits of whole runs: of their data's order, their first weights, masks, steps and validations.
// They are the same on every machine, so that a run of one version goes on in the next one.
// A change of bits that is meant raises kArithmeticVersion; what is found then is what is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

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
  expect_bits({{"plain", [](auto&) {}, "?"},
               {"characters", [](auto& o) { o.level = TextLevel::kChar; }, "?"},
               {"one-hot", [](auto& o) { o.embedding = 0; }, "?"},
               {"gru", [](auto& o) { o.network["cell"] = "gru"; }, "?"},
               {"rnn_tanh", [](auto& o) { o.network["cell"] = "rnn_tanh"; }, "?"},
               {"float64", [](auto& o) { o.network["dtype"] = "float64"; }, "?"},
               {"float16", [](auto& o) { o.network["dtype"] = "float16"; }, "?"},
               {"without dropout", [](auto& o) { o.network["dropout"] = 0.0; }, "?"},
               {"another seed", [](auto& o) { o.network["seed"] = 6; }, "?"},
               {"parts", [](auto& o) { o.micro_batches = 3; }, "?"},
               {"clipped", [](auto& o) { o.clip_norm = 0.05; }, "?"},
               {"not clipped", [](auto& o) { o.clip_norm = 0.0; }, "?"},
               {"all held out behind it", [](auto& o) { o.valid_fraction = 0.4; }, "?"},
               {"a window of all", [](auto& o) { o.seq_len = 1000; }, "?"}},
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
  expect_bits({{"sgd", with("sgd", ScheduleKind::kConstant, 0), "?"},
               {"momentum", with("momentum", ScheduleKind::kExponential, 3), "?"},
               {"nesterov", with("nesterov", ScheduleKind::kCosine, 5), "?"},
               {"adagrad", with("adagrad", ScheduleKind::kConstant, 7), "?"},
               {"rmsprop", with("rmsprop", ScheduleKind::kExponential, 0), "?"},
               {"adam", with("adam", ScheduleKind::kCosine, 39), "?"}},
              text_options);
}

TEST(RunBits, OfSeries) {
  expect_bits({{"plain", [](auto&) {}, "?"},
               {"one", [](auto& o) { o.target = "one"; }, "?"},
               {"far", [](auto& o) { o.horizon = 4; }, "?"},
               {"one column", [](auto& o) { o.columns = {{"b"}}; }, "?"},
               {"other columns",
                [](auto& o) {
                  o.columns = {{"3", "a"}};
                },
                "?"},
               {"parts", [](auto& o) { o.micro_batches = 3; }, "?"},
               {"more held out", [](auto& o) { o.valid_fraction = 0.5; }, "?"},
               {"float16", [](auto& o) { o.network["dtype"] = "float16"; }, "?"},
               {"float64", [](auto& o) { o.network["dtype"] = "float64"; }, "?"}},
              series_options_of);
}

// What a run is asked for by epochs, or by nothing, has the steps of its data.
TEST(RunBits, OfStepsThatTheDataSay) {
  const TempFolder folder;
  RunOptions options = text_options(folder);
  options.steps = std::nullopt;
  options.valid_every = std::nullopt;
  options.epochs = 2;
  train::Run run(options);
  EXPECT_EQ(run.config().fit.steps, 0);
  EXPECT_EQ(run.config().fit.validate_every, 0);
  EXPECT_EQ(run.config().fit.schedule.warmup_steps, 0);
  run.train();
  EXPECT_EQ(bits_of(options.out + "/model.ckpt-" + std::to_string(run.step())), "?");
}

TEST(RunBits, OfWhatATrainedModelSays) {
  const TempFolder folder;
  const RunOptions options = text_options(folder);
  train::Run(options).train();
  TrainedModel trained(options.out);
  const auto sample = [&](double temperature, std::int64_t top_k) {
    return sample_text(
        trained.model(), trained.vocabulary(),
        {.symbols = 60, .temperature = temperature, .top_k = top_k, .prime = "the ", .seed = 3});
  };
  EXPECT_EQ(sample(1.0, 0), "?");
  EXPECT_EQ(sample(0.5, 0), "?");
  EXPECT_EQ(sample(1.0, 3), "?");
  EXPECT_EQ(sample(0.0, 0), "?");
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
  EXPECT_EQ(bits("the mat", ""), "?");
  EXPECT_EQ(bits("the m?t", "sat on "), "?");
  EXPECT_EQ(bits(long_text, ""), "?");
  EXPECT_EQ(bits(std::string_view(long_text).substr(0, 1700), "a"), "?");
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
  EXPECT_EQ(score.season, 0);
  EXPECT_EQ(fingerprint({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double)}),
            "?");
}

}  // namespace
}  // namespace openrnn::train
