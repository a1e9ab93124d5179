// The options of each kind of layer with their defaults, how many inputs it has, and activations
// whose parentheses do not close.
#include <gtest/gtest.h>
#include <openrnn/mapping.h>

#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using Sizes = std::vector<std::int64_t>;
using Reals = std::vector<double>;
using Options = std::vector<std::pair<std::string, PlainValue>>;

std::string words(const char* text) { return text; }

TEST(LayerDefaults, OfEachKind) {
  const std::int64_t none = 0;
  const std::pair<std::string, PlainValue> trainable{"trainable", true};
  const std::pair<const char*, Options> kinds[] = {
      {"input", {{"shape", Sizes{}}, {"dtype", words("float32")}}},
      {"embedding",
       {{"vocabulary", none},
        {"dim", none},
        {"mask_zero", false},
        {"dtype", words("float32")},
        trainable}},
      {"masking", {{"mask_value", 0.0}}},
      {"recurrent",
       {{"network", words("")},
        {"return_sequences", true},
        {"return_state", false},
        {"merge", words("concat")},
        {"reverse", false},
        {"stateful", false},
        {"zero_output_for_mask", false},
        {"uses_mask", true},
        {"initial_h", Reals{}},
        {"initial_c", Reals{}},
        trainable}},
      {"dense", {{"units", none}, {"activation", words("linear")}, {"use_bias", true}, trainable}},
      {"activation", {{"activation", words("linear")}}},
      {"dropout", {{"rate", 0.0}}},
      {"reshape", {{"shape", Sizes{}}}},
      {"repeat", {{"count", std::int64_t{1}}}},
      {"time_mean", {}},
      {"concat", {{"axis", std::int64_t{-1}}}},
      {"add", {}},
      {"subtract", {}},
      {"multiply", {}},
      {"average", {}}};
  std::vector<std::string> names;
  for (const auto& [kind, options] : kinds) {
    names.emplace_back(kind);
    std::vector<std::string> found;
    for (const auto& [name, value] : options) {
      found.push_back(name);
      EXPECT_EQ(layer_option({.name = "e", .kind = kind}, name), value) << kind << " " << name;
    }
    EXPECT_EQ(layer_options(kind), found) << kind;
  }
  EXPECT_EQ(layer_kinds(), names);
}

std::size_t outputs_of(const std::string& kind, std::vector<LayerValue> inputs) {
  MappedModel model;
  model.networks = {
      {.name = "n",
       .spec = {.num_units = 4, .input_size = 3, .direction = Direction::kBidirectional}}};
  MappedLayer layer{.name = "e", .kind = kind};
  if (kind == "recurrent") layer.options = {{"network", words("n")}};
  return layer_outputs(layer, inputs, find_spec_in(model)).size();
}

TEST(LayerDefaults, HowManyInputsEachKindTakes) {
  const LayerValue x{DType::kFloat32, {2, 7, 3}}, state{DType::kFloat32, {2, 4}};
  EXPECT_EQ(outputs_of("recurrent", {x, state, state, state, state}), 1U);
  expect_error<ArgumentError>(
      [&] {
        outputs_of("recurrent", {x, state, state, state, state, state});
      },
      "[layers] the layer 'e' (recurrent) has 6 inputs, expected 1 or more");
  for (const char* kind : {"add", "multiply", "average", "concat"}) {
    EXPECT_EQ(outputs_of(kind, {x}), 1U) << kind;
    EXPECT_EQ(outputs_of(kind, {x, x, x, x, x, x, x}), 1U) << kind;
  }
  EXPECT_EQ(outputs_of("subtract", {x, x}), 1U);
  const std::pair<const char*, const char*> said[] = {
      {"subtract", "has 3 inputs, expected 2"},   {"embedding", "has 3 inputs, expected 1"},
      {"masking", "has 3 inputs, expected 1"},    {"dense", "has 3 inputs, expected 1"},
      {"activation", "has 3 inputs, expected 1"}, {"dropout", "has 3 inputs, expected 1"},
      {"reshape", "has 3 inputs, expected 1"},    {"repeat", "has 3 inputs, expected 1"},
      {"time_mean", "has 3 inputs, expected 1"},  {"input", "has 3 inputs, expected 0"}};
  for (const auto& [kind, what] : said) {
    expect_error<ArgumentError>(
        [&, kind = kind] {
          outputs_of(kind, {x, x, x});
        },
        std::string("[layers] the layer 'e' (") + kind + ") " + what);
  }
}

// What is made of a layer with these weights, or why it is refused.
std::string said_of(const std::string& kind, std::vector<LayerWeight> weights) {
  MappedLayer layer{.name = "e", .kind = kind, .weights = std::move(weights)};
  layer.options = {{"units", std::int64_t{2}}};
  if (kind == "embedding") {
    layer.options = {{"vocabulary", std::int64_t{3}}, {"dim", std::int64_t{2}}};
  }
  const DType dtype = kind == "embedding" ? DType::kInt32 : DType::kFloat32;
  const std::vector<LayerValue> inputs{{dtype, {-1, 3}}};
  try {
    return to_string(layer_outputs(layer, inputs, find_spec_in({}))[0].shape);
  } catch (const ArgumentError& error) {
    const std::string text = error.what();
    return text.substr(text.find(") ") + 2);
  }
}

// Each weight has exactly its name: none in front of it, behind it or of other letters.
TEST(LayerDefaults, NamesOfWeights) {
  const Array kernel(DType::kFloat32, {3, 2}), bias(DType::kFloat32, {2});
  EXPECT_EQ(said_of("dense", {{"kernel", kernel}, {"bias", bias}}), "[-1, 2]");
  EXPECT_EQ(said_of("embedding", {{"embeddings", kernel}}), "[-1, 3, 2]");
  for (const std::string other : {"a/", "recurrent_", "", "KERNEL", "bias"}) {
    for (const std::string end : {"", "/a", ":0", "s"}) {
      for (const std::string name : {"kernel", "bias", "embeddings"}) {
        const bool is_word = other == "KERNEL" || other == "bias";
        const std::string given = (is_word ? other : other + name) + end;
        if (given == name) continue;
        const std::string said = "has the weight '" + given + "', expected '" + name + "'";
        const auto found = name == "kernel" ? said_of("dense", {{given, kernel}, {"bias", bias}})
                           : name == "bias" ? said_of("dense", {{"kernel", kernel}, {given, bias}})
                                            : said_of("embedding", {{given, kernel}});
        EXPECT_EQ(found, said);
      }
    }
  }
}

// Each weight and each of its slots has the shape and the dtype of its place.
TEST(LayerDefaults, ShapesOfWeightsAndSlots) {
  const Array kernel(DType::kFloat32, {3, 2}), bias(DType::kFloat32, {2});
  const Array wide(DType::kFloat64, {2}), row(DType::kFloat32, {1, 2});
  const auto with_slots = [&](const Array& m, const Array& v) {
    return said_of("dense", {{"kernel", kernel}, {"bias", bias, {{"m", m}, {"v", v}}}});
  };
  EXPECT_EQ(with_slots(bias, bias), "[-1, 2]");
  EXPECT_EQ(with_slots(wide, bias), "has the slot 'm' float64 [2], expected float32 [2]");
  EXPECT_EQ(with_slots(bias, wide), "has the slot 'v' float64 [2], expected float32 [2]");
  EXPECT_EQ(with_slots(bias, row), "has the slot 'v' float32 [1, 2], expected float32 [2]");
  EXPECT_EQ(said_of("dense", {{"kernel", kernel}, {"bias", row}}),
            "has bias float32 [1, 2], expected float32 [2]");
  EXPECT_EQ(said_of("dense", {{"kernel", kernel}, {"bias", bias}, {"more", bias}}),
            "has 3 weights, expected 2");
  EXPECT_EQ(said_of("embedding", {{"embeddings", kernel}, {"more", bias}}),
            "has 2 weights, expected 1");
}

TEST(LayerDefaults, ParenthesesThatDoNotClose) {
  for (const char* text : {"elu(1", "elu(", "elu(1)x", "elu)", "(1)", "hard_sigmoid(0.2, 0.5"}) {
    const std::string error = error_of<ArgumentError>([&] { parse_layer_function(text); });
    EXPECT_TRUE(error.starts_with(std::string("[layers] the activation '") + text +
                                  "', expected one of linear, relu, tanh, "))
        << error;
  }
}

}  // namespace
}  // namespace openrnn
