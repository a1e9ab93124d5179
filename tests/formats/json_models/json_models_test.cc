// JSON of RTNeural and of NeuralAmpModeler as tensors and values: kinds, numbers, limits.
#include "formats/json_models/json_models.h"

#include <gtest/gtest.h>
#include <openrnn/formats_model_file.h>

#include "formats/temp_folder.h"

namespace openrnn::formats {
namespace {

FileContents rtneural(const std::string& layers) {
  return read_rtneural(
      std::make_unique<MemorySource>("m", "{\"in_shape\": 1, \"layers\": " + layers + "}"));
}
FileContents nam(const std::string& text) {
  return read_nam(std::make_unique<MemorySource>("m", text));
}

using Values = std::vector<std::pair<std::string, PlainValue>>;
Values values_of(const FileContents& contents) {
  Values values;
  for (const NamedValue& one : contents.values) values.emplace_back(one.name, one.value);
  return values;
}

TEST(JsonModels, KindsByTheirKeys) {
  const auto kind_of = [](const std::string& text) {
    return kind_of_json_model(MemorySource("m", text));
  };
  EXPECT_EQ(kind_of(R"({"layers": [], "in_shape": 1})"), FileKind::kRtneural);
  EXPECT_EQ(kind_of(R"({"architecture": "", "weights": []})"), FileKind::kNam);
  for (const char* text : {R"({"layers": []})", R"({"in_shape": 1})", R"({"architecture": ""})",
                           R"({"weights": []})", R"({"layers": [], "weights": []})"}) {
    EXPECT_EQ(kind_of(text), FileKind::kUnknown) << text;
  }
}

TEST(JsonModels, NumbersAsTheyFit) {
  const Values expected = {
      {"most", std::int64_t{INT64_MAX}},    {"beyond", 9223372036854775808.0},
      {"least", std::int64_t{INT64_MIN}},   {"below", -9223372036854775809.0},
      {"unsigned", 18446744073709551615.0}, {"real", 2.0},
      {"text", std::string("a")},           {"flag", true},
      {"in.side", std::int64_t{-1}},
  };
  Values found = values_of(nam(
      R"({"most": 9223372036854775807, "beyond": 9223372036854775808, "least": -9223372036854775808,
          "below": -9223372036854775809, "unsigned": 18446744073709551615, "real": 2.0, "text": "a",
          "flag": true, "in": {"side": -1, "deeper": {}, "list": [1]}, "null": null, "list": [1]})"));
  Values sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, sorted);
}

TEST(JsonModels, WeightsOfEveryRank) {
  const FileContents contents = rtneural(
      R"([{"type": "a", "weights": [[[1, 2], [3, 4]], [5], [], [[], []], [[[[6, 7]]]], 8, "x"]},
          {"weights": []}])");
  const std::pair<const char*, Shape> expected[] = {
      {"layers.0.weights.0", {2, 2}},       {"layers.0.weights.1", {1}},
      {"layers.0.weights.2", {0}},          {"layers.0.weights.3", {2, 0}},
      {"layers.0.weights.4", {1, 1, 1, 2}},
  };
  ASSERT_EQ(contents.tensors.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(contents.tensors[i].name, expected[i].first);
    EXPECT_EQ(contents.tensors[i].shape, expected[i].second);
    EXPECT_EQ(contents.tensors[i].dtype, "float32");
  }
  const std::string bytes = contents.sources[0]->read_string(0, 16);
  EXPECT_EQ(reinterpret_cast<const float*>(bytes.data())[3], 4.0F);
  EXPECT_EQ(nam(R"({"weights": [1, 2, 3]})").tensors[0].shape, Shape{3});
}

// A function that is no text is kept as one: it is not the same as none.
TEST(JsonModels, Activations) {
  EXPECT_EQ(values_of(rtneural(R"([{"activation": ["a"], "other": ["a"], "units": 3}])")),
            (Values{{"layers.0.activation", std::string("[\"a\"]")},
                    {"layers.0.units", std::int64_t{3}}}));
  EXPECT_EQ(values_of(rtneural(R"([{"activation": "tanh"}, {"activation": ""}])")),
            (Values{{"layers.0.activation", std::string("tanh")},
                    {"layers.1.activation", std::string()}}));
}

TEST(JsonModels, WhatIsRefused) {
  const std::pair<std::string, const char*> layers[] = {
      {"{}", "'layers' is no list"},
      {"[1]", "layers.0. is no object"},
      {R"([{"weights": 1}])", "layers.0.weights is no list"},
      {R"([{"weights": [[1, "x"]]}])", "has no number where one is expected"},
      {R"([{"weights": [[[1], [2, 3]]]}])", "has lists of unequal length, expected 1"},
      {R"([{"weights": [[[1, 2], [3]]]}])", "has lists of unequal length, expected 2"},
      {R"([{"weights": [[[1], 2]]}])", "has lists of unequal length"},
      {R"([{"weights": [[[[[[1]]]]]]}])", "has no number where one is expected"},
      {R"([{"a\u0001": 1}])", "a key has a control character"},
      {R"([{"a": 1, "a": 2}])", "'a' is there twice in an object"},
  };
  for (const auto& [text, what] : layers) EXPECT_MESSAGE(FormatError, rtneural(text), what);
  EXPECT_MESSAGE(FormatError, nam("[]"), "it is no JSON object");
  EXPECT_MESSAGE(FormatError, nam("{"), "this is no JSON");
  EXPECT_MESSAGE(FormatError, nam("{} x"), "this is no JSON");
  EXPECT_MESSAGE(FormatError, nam(R"({"weights": {}})"), "'weights' is no list");
  EXPECT_MESSAGE(FormatError, nam(R"({"a": {"b": 1, "b": 2}})"), "'b' is there twice");
  // The same key in another object is another one.
  EXPECT_NO_THROW(nam(R"({"a": {"a": 1}, "b": {"a": 2}})"));
}

TEST(JsonModels, Depth) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_NO_THROW(nam(nested(64)));
  EXPECT_MESSAGE(FormatError, nam(nested(65)), "m @ 69] values are more than 64 deep");
  // Brackets of a text are none, behind an escaped quote either.
  EXPECT_NO_THROW(nam("{\"a\": \"\\\"" + std::string(100, '[') + "\"}"));
  EXPECT_NO_THROW(nam("{\"a\": \"\\\\\", \"b\": [" + std::string(200, '1') + "]}"));
  std::string wide = "{\"a\": [0";
  for (int i = 0; i < 100; ++i) wide += ", [], {}";
  EXPECT_NO_THROW(nam(wide + "]}"));
}

}  // namespace
}  // namespace openrnn::formats
