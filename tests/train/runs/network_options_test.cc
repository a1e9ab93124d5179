// The options of a run that are fields of its network. The tests walk rnn_fields(), so that a new
// field is in them.
#include "train/run/network_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/expect_error.h"
#include "train/run/option_error.h"
#include "train/run/text_of.h"

namespace openrnn::train {
namespace {

// A value that is not the default, and inside a run's bounds.
FieldValue other_value(const RnnField& field) {
  const FieldValue before = field.default_value();
  switch (field.type) {
    case FieldType::kBool:
      return before != FieldValue(true);
    case FieldType::kInteger:
      return std::int64_t{7};
    case FieldType::kNumber:
      return before == FieldValue(0.5) ? 0.25 : 0.5;
    case FieldType::kPair:
      return std::array{-0.5, 1.5};
    case FieldType::kDType:
      return "float64";
    case FieldType::kActivation:
      return "leaky_relu(0.25)";
    default:  // a word that is not another name of the default
      return std::string(*std::ranges::find_if(field.choices, [&](auto word) {
        RnnSpec network;
        field.put(network, std::string(word));
        return field.get(network) != before;
      }));
  }
}

RnnSpec with_other_value(const NetworkOption& option) {
  RnnSpec network;
  option.field->put(network, other_value(*option.field));
  return network;
}

bool stores(const RnnSpec& network, const std::string& key) {
  const std::string text = to_json({.model = {.network = network}});
  return text.find("\"" + key + "\": ", text.find("\"model\"")) != std::string::npos;
}

TEST(NetworkOptions, AreAllFieldsButThree) {
  std::set<std::string> names;
  std::set<std::string_view> fields{"input_size", "direction", "weights_dtype"};
  for (const NetworkOption& option : network_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(fields.insert(option.field->name).second) << option.name;
    EXPECT_EQ(find_network_option(option.name), &option);
    EXPECT_NE(option.help.find("(default "), std::string::npos) << option.name;
  }
  EXPECT_EQ(fields.size(), rnn_fields().size());
  for (const char* name : {"cell", "layers", "units", "dropout", "seed", "dtype", "math",
                           "cell_clip", "forget_bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(find_network_option("direction"), nullptr);
  EXPECT_EQ(std::ranges::count_if(network_options(), &NetworkOption::always), 7);
}

TEST(NetworkOptions, EachIsStoredAndReadWhereItIsSet) {
  for (const NetworkOption& option : network_options()) {
    const std::string key(option.field->name);
    EXPECT_EQ(stores({}, key), option.always) << key;
    const RnnSpec network = with_other_value(option);
    ASSERT_NE(network, RnnSpec{}) << key;
    const RunConfig config{.model = {.network = network}};
    EXPECT_TRUE(stores(network, key)) << key;
    EXPECT_EQ(run_config_from_json(to_json(config)).model.network, network) << key;
  }
}

TEST(NetworkOptions, EachIsComparedOnResume) {
  for (const NetworkOption& option : network_options()) {
    const FieldValue given = other_value(*option.field), had = option.field->default_value();
    const RunOptions options{.network = {{option.name, given}}};
    EXPECT_NO_THROW(agree_on_network(options, with_other_value(option))) << option.name;
    EXPECT_NO_THROW(agree_on_network({}, with_other_value(option))) << option.name;
    const std::string expected = std::holds_alternative<std::monostate>(had)
                                     ? "no " + option.name
                                     : option.name + " " + text_of(had);
    expect_error<OptionError>([&] { agree_on_network(options, {}); },
                              "[Run] " + option.name + " " + text_of(given) +
                                  " contradicts the run to resume, expected " + expected);
  }
  EXPECT_NO_THROW(agree_on_network({.network = {{"dropout", 0}}}, {}));  // as a number
}

TEST(NetworkOptions, OfANewRunAreChecked) {
  const auto refused = [](const char* name, const FieldValue& value, const std::string& text) {
    expect_error<ArgumentError>([&] { new_network({.network = {{name, value}}}); }, text);
  };
  refused("units", 0, "[Run] units 0, expected 1 or more");
  refused("units", "many", "[RnnSpec] num_units is many, expected a whole number");
  refused("forget_bias", std::nan(""), "[Run] forget_bias nan, expected a finite number");
  refused("cell_clip", std::array<double, 2>{-INFINITY, 1.0},
          "[Run] cell_clip -inf,1, expected finite numbers");
  refused("cell_clip", std::array<double, 2>{-1.0, INFINITY},
          "[Run] cell_clip -1,inf, expected finite numbers");
  refused("cell_clip", std::array{1.0, -1.0},
          "[RnnSpec] cell_clip is [1, -1], expected low <= high");
  const std::string text = error_of([] {
    new_network({.network = {{"num_units", 3}}});
  });  // units is its name
  EXPECT_EQ(text.find("[Run] network has 'num_units', expected one of cell, layers, units, "), 0u);
  expect_error<ArgumentError>(
      [] {
        new_network({.network = {{"cell", "gru"}, {"forget_bias", 1.0}}});
      },
      "[RnnSpec] forget_bias is set for gru, expected it for lstm only");
}

TEST(NetworkOptions, OfANewRunHaveItsDefaults) {
  const RnnSpec text = new_network({.network = {{"dropout", 1}}});
  EXPECT_EQ(text, (RnnSpec{.num_units = 256, .training = {.dropout = 1.0, .seed = 0}}));
  EXPECT_EQ(new_network({.task = "series"}).num_units, 32);
}

// A file that the first version wrote.
constexpr const char* kFirst = R"({
  "batch": 3,
  "columns": [],
  "data_hash": "0123456789abcdef",
  "epochs": 0,
  "fit": {
    "clip_norm": 1.0,
    "decay_rate": 0.5,
    "decay_steps": 24,
    "final_fraction": 0.05,
    "learning_rate": 0.004,
    "patience": 0,
    "schedule": "cosine",
    "steps": 24,
    "validate_every": 1,
    "warmup_steps": 1
  },
  "horizon": 1,
  "input": "text.txt",
  "level": "byte",
  "model": {
    "columns": 0,
    "dropout": 0.25,
    "dtype": "float16",
    "embedding": 4,
    "math": "float32",
    "num_layers": 2,
    "num_units": 7,
    "outputs": 19,
    "rnn_mode": "gru",
    "seed": 5,
    "vocabulary": 19
  },
  "optimizer": "adam",
  "rnn_mode": "gru",
  "seq_len": 9,
  "task": "text",
  "to_sequence": true,
  "valid": "",
  "valid_fraction": 0.05
})";

TEST(NetworkOptions, FilesOfTheFirstVersionAreReadAndWrittenAsTheyWere) {
  const RunConfig config = run_config_from_json(kFirst);
  EXPECT_EQ(config.model.network, (RnnSpec{.mode = RnnMode::kGru,
                                           .num_layers = 2,
                                           .num_units = 7,
                                           .dtype = DType::kFloat16,
                                           .training = {.dropout = 0.25, .seed = 5}}));
  EXPECT_EQ(to_json(config), kFirst);
}

TEST(NetworkOptions, AFileThatLacksOneOrHasAnUnknownOneIsRefused) {
  const auto without = [](const std::string& key) {
    std::string text = kFirst;
    const std::size_t begin = text.find("\"" + key + "\"", text.find("\"model\""));
    text.erase(begin, text.find('\n', begin) - begin);
    return error_of([&] { run_config_from_json(text); });
  };
  EXPECT_EQ(without("math"), "");  // older than math
  for (const char* key : {"rnn_mode", "num_layers", "num_units", "dropout", "seed", "dtype"}) {
    EXPECT_NE(without(key).find(key), std::string::npos) << key;
  }
  const auto with = [](const std::string& line) {
    std::string text = kFirst;
    text.insert(text.find("\"columns\": 0,"), line + ", ");
    return error_of<ArgumentError>([&] { run_config_from_json(text); });
  };
  EXPECT_EQ(with(R"("cell_clip": [-1, 2.5], "num_proj": null)"), "");
  EXPECT_EQ(with(R"("of_tomorrow": true)"),
            "[run_config_from_json] the model has 'of_tomorrow', expected only what this version "
            "of the library knows");
  EXPECT_EQ(with(R"("forget_bias": true)"), "[RnnSpec] forget_bias is true, expected a number");
  for (const char* line : {R"("cell_clip": [1.0])", R"("cell_clip": [1, 2, 3])",
                           R"("cell_clip": ["a", "b"])", R"("forget_bias": {})"}) {
    EXPECT_NE(with(line), "") << line;
  }
}

}  // namespace
}  // namespace openrnn::train
