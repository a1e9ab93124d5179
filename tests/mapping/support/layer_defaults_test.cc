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
