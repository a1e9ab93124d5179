// Checkpoints of runs whose extras are not what a run writes: each is refused, and nothing changes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <tuple>

#include "formats/temp_folder.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

using formats::TempFolder;

Text small_text() {
  const char* const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat,\n"};
  return text_of_words(words, 900, 200);
}

RunConfig config_of(const Text& text) {
  RunConfig config;
  config.model.network.num_layers = 2;
  config.model.network.num_units = 4;
  config.model.embedding = 3;
  config.model.vocabulary = config.model.outputs = text.vocabulary.size();
  return config;
}

Extras with_vocabulary(const RunConfig& config, std::vector<std::int32_t> codes) {
  Extras extras;
  extras.set_string("config", to_json(config));
  extras.set("vocabulary", Array::of<std::int32_t>({static_cast<std::int64_t>(codes.size())},
                                                   std::span<const std::int32_t>(codes)));
  return extras;
}

/// A text run of three steps, in a graph of its own.
struct SmallRun {
  Graph graph;
  Graph::AsDefault current{graph};
  Text text = small_text();
  RunConfig config = config_of(text);
  SequenceModel model{config.model};
  TextTask task{model, text, {.batch = 3, .seq_len = 17}};
  std::unique_ptr<Optimizer> optimizer = make_optimizer("sgd", 0.01);
  Fit fit{task, *optimizer, {.steps = 3}};

  Extras trained() {
    fit.run();
    Extras extras;
    fit.save(extras);
    return extras;
  }
  std::map<std::string, TensorValue> values() const {
    Extras extras;
    fit.save(extras);
    return extras.values();
  }
};

bool same(const TensorValue& a, const TensorValue& b) {
  const Array *x = std::get_if<Array>(&a), *y = std::get_if<Array>(&b);
  if (!x || !y) return std::get<StringTensor>(a) == std::get<StringTensor>(b);
  return x->dtype() == y->dtype() && x->shape() == y->shape() &&
         std::memcmp(x->data(), y->data(), x->size_bytes()) == 0;
}

TEST(HostileRun, EveryExtraIsCheckedBeforeItIsRead) {
  SmallRun run;
  const Extras good = run.trained();
  ASSERT_TRUE(good.contains("best"));
  ASSERT_TRUE(good.contains("state_1"));
  SmallRun fresh;
  const auto before = fresh.values();
  for (const auto& entry : good.values()) {
    const Array& value = std::get<Array>(entry.second);
    Shape other = value.shape();
    other.push_back(1);
    const std::vector<TensorValue> bad{Array(value.dtype(), {0}), Array(value.dtype(), other),
                                       Array(DType::kUInt8, value.shape()),
                                       StringTensor{{}, {"text"}}, StringTensor{{0}, {}}};
    for (const TensorValue& instead : bad) {
      Extras extras = good;
      extras.set(entry.first, instead);
      EXPECT_THROW(fresh.fit.load(extras), TypeError) << entry.first;
    }
  }
  for (const char* name :
       {"epoch", "window", "worse", "best_step", "dropout_calls", "state_count"}) {
    for (const std::int64_t value : {std::int64_t{-1}, INT64_MIN}) {
      Extras extras = good;
      extras.set_int(name, value);
      EXPECT_THROW(fresh.fit.load(extras), ArgumentError) << name;
    }
  }
  const auto said = [&](const char* name, std::int64_t value) {
    Extras extras = good;
    extras.set_int(name, value);
    return formats::thrown<ArgumentError>([&] { fresh.fit.load(extras); });
  };
  EXPECT_EQ(said("dropout_calls", -3),
            "[Task] dropout_calls -3 of the saved run, expected 0 or more");
  EXPECT_EQ(said("state_count", 1), "[TextTask] state_count 1 of the saved run, expected 0 or 2");
  for (const char* name : {"window", "state_count"}) {
    Extras extras = good;
    extras.set_int(name, INT64_MAX);
    EXPECT_THROW(fresh.fit.load(extras), ArgumentError) << name;
  }
  Extras extras = good;
  extras.set_float("best", std::nan(""));
  EXPECT_THROW(fresh.fit.load(extras), ArgumentError);
  const auto after = fresh.values();
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) EXPECT_TRUE(same(after.at(name), value)) << name;
  EXPECT_NO_THROW(fresh.fit.load(good));
}

TEST(HostileRun, ATaskThatIsNotKnown) {
  const TempFolder folder;
  SmallRun run;
  run.config.task = "speech";
  Saver().write(folder / "bad", with_vocabulary(run.config, run.text.vocabulary.codes()));
  EXPECT_MESSAGE(ArgumentError, TrainedModel(folder / "bad"),
                 "the task 'speech', expected text or series");
}

TEST(HostileRun, HalfOfACheckpointIsAnError) {
  const TempFolder folder;
  SmallRun run;
  Saver().write(folder / "half", with_vocabulary(run.config, run.text.vocabulary.codes()));
  std::filesystem::remove(folder / "half.data-00000-of-00001");
  EXPECT_MESSAGE(IoError, TrainedModel(folder / "half"), "half.data-00000-of-00001");
}

TEST(HostileRun, AVocabularyThatDoesNotFitTheModel) {
  const TempFolder folder;
  SmallRun run;
  const std::vector<std::int32_t> codes = run.text.vocabulary.codes();
  Saver().write(folder / "good", with_vocabulary(run.config, codes));
  EXPECT_NO_THROW(TrainedModel(folder / "good"));
  std::vector<std::int32_t> more = codes;
  more.push_back(255);
  for (const std::vector<std::int32_t>& bad :
       {std::vector<std::int32_t>(codes.begin() + 1, codes.end()), more, {}}) {
    Saver().write(folder / "bad", with_vocabulary(run.config, bad));
    // The unknown symbol is one, too.
    const std::string symbols = std::to_string(bad.size() + 1),
                      model = std::to_string(run.config.model.vocabulary);
    EXPECT_MESSAGE(ArgumentError, TrainedModel(folder / "bad"),
                   "[TrainedModel] checkpoint '" + folder / "bad" + "' has a vocabulary of " +
                       symbols + " symbols and a model of " + model + " inputs and " + model +
                       " outputs, expected as many of each");
  }
  // As many inputs as symbols, but not as many outputs.
  RunConfig other = run.config;
  ++other.model.outputs;
  Saver().write(folder / "bad", with_vocabulary(other, codes));
  EXPECT_MESSAGE(ArgumentError, TrainedModel(folder / "bad"),
                 " inputs and " + std::to_string(other.model.outputs) + " outputs");
  Extras wrong = with_vocabulary(run.config, codes);
  wrong.set("vocabulary", Array(DType::kInt64, {static_cast<std::int64_t>(codes.size())}));
  Saver().write(folder / "bad", wrong);
  EXPECT_MESSAGE(TypeError, TrainedModel(folder / "bad"), "vocabulary is int64");
  RunConfig config = run.config;
  config.level = TextLevel::kChar;
  std::vector<std::int32_t> surrogates = codes;
  surrogates.back() = 0xd800;
  Saver().write(folder / "bad", with_vocabulary(config, surrogates));
  EXPECT_MESSAGE(ArgumentError, TrainedModel(folder / "bad"), "without surrogates");
}

TEST(HostileRun, ColumnsThatDoNotFitTheModel) {
  const TempFolder folder;
  const auto opened = [&](std::int64_t columns, std::int64_t outputs) {
    RunConfig config;
    config.task = "series";
    config.columns = {"a", "b"};
    config.model.network.num_units = 4;
    config.model.columns = columns;
    config.model.outputs = outputs;
    Graph graph;
    const Graph::AsDefault current(graph);
    const SequenceModel model(config.model);
    Extras extras;
    extras.set_string("config", to_json(config));
    Saver().write(folder / "a", extras);
    TrainedModel(folder / "a");
  };
  EXPECT_NO_THROW(opened(2, 2));
  EXPECT_MESSAGE(ArgumentError, opened(3, 2), "2 columns and a model of 3 inputs and 2 outputs");
  EXPECT_MESSAGE(ArgumentError, opened(2, 3), "2 columns and a model of 2 inputs and 3 outputs");
}

// A file of some kilobytes would take gigabytes.
TEST(HostileRun, AModelThatIsLargerThanItsFile) {
  const TempFolder folder;
  SmallRun run;
  using Sizes = std::vector<std::int64_t*>;
  for (std::size_t size = 0; size < 5; ++size) {
    RunConfig config = run.config;
    ModelConfig& model = config.model;
    *Sizes{&model.network.num_units, &model.network.num_layers, &model.vocabulary, &model.embedding,
           &model.outputs}[size] = 100000;
    Saver().write(folder / "bad", with_vocabulary(config, run.text.vocabulary.codes()));
    std::uint64_t bytes = 0;
    for (const TensorInfo& info : TensorBundleReader(folder / "bad").tensors()) bytes += info.bytes;
    EXPECT_MESSAGE(ArgumentError, TrainedModel(folder / "bad"),
                   "[check_size] " + folder / "bad" + " has " + std::to_string(bytes) +
                       " bytes of tensors, expected more for a model of " +
                       std::to_string(model.network.num_layers) + " layers of " +
                       std::to_string(model.network.num_units) + " units, vocabulary " +
                       std::to_string(model.vocabulary) + " and " + std::to_string(model.outputs) +
                       " outputs");
  }
}

TEST(HostileRun, AScalingThatDividesByNothing) {
  const auto scaling = [](const std::string& name, const Array& value) {
    Extras extras;
    const double two[] = {2.0, 2.0};
    for (const char* each :
         {"series_mean", "series_deviation", "series_change_mean", "series_change_deviation"}) {
      extras.set(each, Array::of<double>({2}, two));
    }
    extras.set(name, value);
    return load_scaling(extras);
  };
  const double zero[] = {2.0, 0.0}, nan[] = {std::nan(""), 1.0};
  EXPECT_NO_THROW(scaling("series_mean", Array::of<double>({2}, zero)));
  for (const char* name : {"series_deviation", "series_change_deviation"}) {
    EXPECT_MESSAGE(
        ArgumentError, scaling(name, Array::of<double>({2}, zero)),
        std::string("[load_scaling] ") + name + " holds 0, expected finite numbers above 0");
    EXPECT_THROW(scaling(name, Array(DType::kFloat64, {3})), TypeError) << name;
    EXPECT_THROW(scaling(name, Array(DType::kFloat32, {2})), TypeError) << name;
  }
  for (const char* name : {"series_mean", "series_change_mean"}) {
    EXPECT_MESSAGE(ArgumentError, scaling(name, Array::of<double>({2}, nan)),
                   std::string("[load_scaling] ") + name + " holds nan, expected finite numbers");
  }
}

TEST(HostileRun, ANumberOfTheScalingIsReadFromItsOwnName) {
  Extras extras;
  const auto set = [&](const char* name, std::vector<double> values) {
    extras.set(name, Array::of<double>({2}, std::span<const double>(values)));
  };
  set("series_mean", {-1.5, 0.0});
  set("series_deviation", {2.5, 3.5});
  set("series_change_mean", {-4.5, 0.0});
  set("series_change_deviation", {5.5, 6.5});
  const SeriesScaling found = load_scaling(extras);
  EXPECT_EQ(found.values.mean, (std::vector{-1.5, 0.0}));
  EXPECT_EQ(found.values.deviation, (std::vector{2.5, 3.5}));
  EXPECT_EQ(found.changes.mean, (std::vector{-4.5, 0.0}));
  EXPECT_EQ(found.changes.deviation, (std::vector{5.5, 6.5}));
}

// No field is what it is by default.
TEST(RunConfiguration, IsReadAsItWasWritten) {
  RunConfig config;
  config.model = {.network = {.mode = RnnMode::kGru,
                              .num_layers = 2,
                              .num_units = 3,
                              .dtype = DType::kFloat64,
                              .training = {.dropout = 0.375, .seed = 8},
                              .compute = {.math = Math::kBf16}},
                  .vocabulary = 4,
                  .embedding = 5,
                  .columns = 6,
                  .outputs = 7};
  config.fit.steps = 9;
  config.fit.clip_norm = 0.5;
  config.fit.validate_every = 10;
  config.fit.patience = 11;
  const RunConfig found = run_config_from_json(to_json(config));
  const ModelConfig &model = found.model, &wanted = config.model;
  EXPECT_EQ(model.network, wanted.network);
  EXPECT_EQ(std::tie(model.vocabulary, model.embedding, model.columns, model.outputs),
            std::tie(wanted.vocabulary, wanted.embedding, wanted.columns, wanted.outputs));
  EXPECT_EQ(found.fit.steps, 9);
  EXPECT_EQ(found.fit.clip_norm, 0.5);
  EXPECT_EQ(found.fit.validate_every, 10);
  EXPECT_EQ(found.fit.patience, 11);
}

TEST(HostileRun, ConfigurationsAreWholeNumbersAndAreQuotedInShort) {
  const std::string good =
      to_json({.model = {.network = {.num_units = 128, .training = {.seed = 0}}}});
  std::string bad = good;
  bad.replace(bad.find("\"num_units\": 128"), 16, "\"num_units\": 1e300");
  EXPECT_MESSAGE(ArgumentError, run_config_from_json(bad),
                 "num_units is 1e+300, expected a whole number");
  bad = good;
  bad.replace(bad.find("\"seed\": 0"), 9, "\"seed\": -1e300");
  EXPECT_MESSAGE(ArgumentError, run_config_from_json(bad),
                 "seed is -1e+300, expected a whole number");
  for (const std::string& text : {"\"" + std::string(100000, 'x'), std::string(100000, 'x')}) {
    const std::string said = formats::thrown<ArgumentError>([&] { run_config_from_json(text); });
    EXPECT_LT(said.size(), 300u);
  }
}

}  // namespace
}  // namespace openrnn::train
