// The kinds of layers: what they make of inputs, and word for word what they refuse.
#include <gtest/gtest.h>
#include <openrnn/mapping.h>

#include <limits>

#include "base/message.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using Sizes = std::vector<std::int64_t>;
using Options = std::map<std::string, PlainValue>;
constexpr DType kReal = DType::kFloat32;

// 'p' projects 5 units to 2, 'b' has two directions, 's' is of several layers.
const MappedModel& model() {
  static const auto* const model = [] {
    auto* const made = new MappedModel();
    const std::pair<const char*, RnnSpec> specs[] = {
        {"p", {.num_units = 5, .input_size = 3, .num_proj = 2}},
        {"b",
         {.mode = RnnMode::kGru,
          .num_units = 4,
          .input_size = 3,
          .direction = Direction::kBidirectional}},
        {"s", {.num_layers = 2, .num_units = 4, .input_size = 3}}};
    for (const auto& [name, spec] : specs) made->networks.push_back({.name = name, .spec = spec});
    return made;
  }();
  return *model;
}

LayerValue of(Shape shape, DType dtype = kReal, bool masked = false) {
  return {.dtype = dtype, .shape = std::move(shape), .masked = masked};
}

std::vector<LayerValue> outputs_of(const MappedLayer& layer, std::vector<LayerValue> inputs) {
  return layer_outputs(layer, inputs, find_spec_in(model()));
}

MappedLayer layer_of(const std::string& kind, Options options = {},
                     std::vector<LayerWeight> weights = {}) {
  return {.name = "e", .kind = kind, .options = std::move(options), .weights = std::move(weights)};
}

// The shapes of what it makes, each with its dtype where that is another one, and 'masked'.
std::string shown(const std::vector<LayerValue>& values) {
  std::string text;
  for (const LayerValue& value : values) {
    text += (text.empty() ? "" : " ") + to_string(value.shape);
    if (value.dtype != kReal) text += " " + std::string(dtype_name(value.dtype));
    if (value.masked) text += " masked";
  }
  return text;
}

struct Refused {
  MappedLayer layer;
  std::vector<LayerValue> inputs;
  /// Behind "[layers] the layer 'e' (KIND) ".
  std::string why;
};

void expect_refused(const std::vector<Refused>& cases) {
  for (const Refused& one : cases) {
    expect_error<ArgumentError>([&] { outputs_of(one.layer, one.inputs); },
                                "[layers] the layer 'e' (" + one.layer.kind + ") " + one.why);
  }
}

using Made = std::tuple<MappedLayer, std::vector<LayerValue>, const char*>;

void expect_made(const std::vector<Made>& cases) {
  for (const auto& [layer, inputs, expected] : cases) {
    EXPECT_EQ(shown(outputs_of(layer, inputs)), expected) << layer.kind;
  }
}

TEST(LayerKinds, WhatTheyMake) {
  expect_made(
      {{layer_of("input", {{"shape", Sizes{-1, 0, 3}}, {"dtype", "int32"}}),
        {},
        "[-1, 0, 3] int32"},
       {layer_of("input", {{"shape", Sizes{4}}, {"dtype", "bfloat16"}}), {}, "[4] bfloat16"},
       {layer_of("embedding",
                 {{"vocabulary", std::int64_t{9}}, {"dim", std::int64_t{1}}, {"dtype", "float16"}}),
        {of({-1, 2, 3}, DType::kInt32)},
        "[-1, 2, 3, 1] float16"},
       {layer_of("embedding",
                 {{"vocabulary", std::int64_t{9}}, {"dim", std::int64_t{2}}, {"mask_zero", true}}),
        {of({-1, 6}, DType::kInt32)},
        "[-1, 6, 2] masked"},
       {layer_of("masking"), {of({-1, 6, 3}, DType::kFloat64)}, "[-1, 6, 3] float64 masked"},
       {layer_of("dense", {{"units", std::int64_t{4}}}), {of({-1, 1})}, "[-1, 4]"},
       {layer_of("dense", {{"units", std::int64_t{4}}}),
        {of({2, -1, 5, 1}, kReal, true)},
        "[2, -1, 5, 4] masked"},
       {layer_of("activation"), {of({-1}, kReal, true)}, "[-1] masked"},
       {layer_of("dropout", {{"rate", 1.0}}), {of({-1, 3}, kReal, true)}, "[-1, 3] masked"},
       {layer_of("dropout", {{"rate", 0.0}}), {of({-1, 3})}, "[-1, 3]"},
       {layer_of("reshape", {{"shape", Sizes{-1, 2}}}), {of({-1, 3, 4})}, "[-1, 6, 2]"},
       {layer_of("reshape", {{"shape", Sizes{-1, 2}}}), {of({-1, -1, 4})}, "[-1, -1, 2]"},
       {layer_of("reshape", {{"shape", Sizes{-1, 2}}}), {of({-1, 4, -1})}, "[-1, -1, 2]"},
       {layer_of("reshape", {{"shape", Sizes{0, 5}}}),
        {of({-1, 3, 0}, DType::kInt32)},
        "[-1, 0, 5] int32"},
       {layer_of("reshape"), {of({7})}, "[7]"},
       {layer_of("repeat", {{"count", std::int64_t{1 << 20}}}),
        {of({-1, 3}, DType::kFloat64)},
        "[-1, 1048576, 3] float64"},
       {layer_of("time_mean"), {of({2, -1, 3}, DType::kFloat64, true)}, "[2, 3] float64"},
       {layer_of("add"), {of({-1, -1, 3}), of({-1, 6, -1}), of({2, 6, 3})}, "[2, 6, 3]"},
       {layer_of("concat"), {of({-1, 6, 3}), of({2, -1, 4})}, "[2, 6, 7]"},
       {layer_of("concat", {{"axis", std::int64_t{1}}}),
        {of({-1, 6, 3}), of({2, -1, 3})},
        "[2, -1, 3]"},
       {layer_of("concat", {{"axis", std::int64_t{1}}}),
        {of({2, -1, 3}), of({2, 5, 3}), of({2, 6, 3})},
        "[2, -1, 3]"}});
}

TEST(LayerKinds, WhatRecurrentLayersMake) {
  expect_made(
      {{layer_of("recurrent", {{"network", "p"}}),
        {of({2, 7, 3}, kReal, true)},
        "[2, 7, 2] masked"},
       {layer_of("recurrent",
                 {{"network", "p"}, {"return_sequences", false}, {"return_state", true}}),
        {of({2, 7, -1}, kReal, true), of({-1, 2}), of({-1, 5})},
        "[2, 2] [2, 2] [2, 5]"},
       {layer_of("recurrent", {{"network", "b"}, {"return_state", true}}),
        {of({-1, -1, 3}), of({-1, 4}), of({-1, -1})},
        "[-1, -1, 8] [-1, 4] [-1, 4]"},
       {layer_of("recurrent", {{"network", "b"}, {"merge", "none"}}),
        {of({2, 7, 3}, kReal, true)},
        "[2, 7, 4] masked [2, 7, 4] masked"},
       {layer_of("recurrent", {{"network", "b"}, {"merge", "mul"}}), {of({2, 7, 3})}, "[2, 7, 4]"},
       {layer_of("recurrent", {{"network", "s"},
                               {"initial_h", std::vector<double>(8)},
                               {"initial_c", std::vector<double>(8)}}),
        {of({2, 7, 3})},
        "[2, 7, 4]"},
       {layer_of("recurrent", {{"network", "p"},
                               {"initial_h", std::vector<double>(2)},
                               {"initial_c", std::vector<double>(5)}}),
        {of({2, 7, 3})},
        "[2, 7, 2]"}});
}

const std::string kDimensions = " dimensions";

TEST(LayerKinds, InputsAndOptionsThatTheyRefuse) {
  const Options words{{"vocabulary", std::int64_t{9}}, {"dim", std::int64_t{2}}};
  Options masked = words;
  masked["mask_zero"] = true;
  Options integers = words;
  integers["dtype"] = std::string("int32");
  expect_refused({
      {layer_of("input", {{"shape", Sizes{}}}),
       {},
       "has an input of shape [], expected 1 or more" + kDimensions},
      {layer_of("input", {{"shape", Sizes{2, -2}}}), {}, "has a size of -2, expected -1 or more"},
      {layer_of("input", {{"dtype", "int64"}, {"shape", Sizes{2}}}),
       {},
       "has dtype 'int64', expected int32 or a floating one"},
      {layer_of("embedding", {{"dim", std::int64_t{2}}}),
       {of({2}, DType::kInt32)},
       "has vocabulary 0, expected 1 or more"},
      {layer_of("embedding", {{"vocabulary", std::int64_t{2}}, {"dim", std::int64_t{-3}}}),
       {of({2}, DType::kInt32)},
       "has dim -3, expected 1 or more"},
      {layer_of("embedding", words),
       {of({2}, DType::kFloat64)},
       "has an input of float64, expected int32"},
      {layer_of("embedding", integers),
       {of({2}, DType::kInt32)},
       "has dtype 'int32', expected a floating one"},
      {layer_of("embedding", masked),
       {of({2, 3, 4}, DType::kInt32)},
       "has an input of shape [2, 3, 4], expected 2" + kDimensions},
      {layer_of("masking"), {of({2, 3})}, "has an input of shape [2, 3], expected 3" + kDimensions},
      {layer_of("masking"),
       {of({2, 3, 4}, DType::kInt32)},
       "has an input of int32, expected floating point"},
  });
}

TEST(LayerKinds, SizesThatTheyRefuse) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto dense = [](std::int64_t units) { return layer_of("dense", {{"units", units}}); };
  const auto reshape = [](Sizes shape) { return layer_of("reshape", {{"shape", shape}}); };
  expect_refused({
      {dense(2), {of({3})}, "has an input of shape [3], expected 2 or more" + kDimensions},
      {dense(2), {of({3, 4}, DType::kInt64)}, "has an input of int64, expected floating point"},
      {dense(0), {of({3, 4})}, "has units 0, expected 1 or more"},
      {dense(2),
       {of({3, -1})},
       "has an input of shape [3, -1], expected its last size to be known"},
      {dense(2), {of({3, 0})}, "has an input of shape [3, 0], expected its last size to be known"},
      {layer_of("activation"),
       {of({2}, DType::kBool)},
       "has an input of bool, expected floating point"},
      {layer_of("dropout", {{"rate", 1.5}}), {of({2})}, "has rate 1.5, expected 0 to 1"},
      {layer_of("dropout", {{"rate", -0.5}}), {of({2})}, "has rate -0.5, expected 0 to 1"},
      {layer_of("dropout"),
       {of({2}, DType::kInt32)},
       "has an input of int32, expected floating point"},
      {reshape({}), {of({})}, "has an input of shape [], expected 1 or more" + kDimensions},
      {reshape({-1, -1}), {of({2, 3})}, "has the shape [-1, -1], expected sizes, one of them -1"},
      {reshape({-2}), {of({2, 3})}, "has the shape [-2], expected sizes, one of them -1"},
      {reshape({most, 2}),
       {of({2, -1})},
       message("has the shape [", most, ", 2], expected sizes, one of them -1")},
      {reshape({5, 2}),
       {of({2, 3, 4})},
       "has an input of shape [2, 3, 4], which does not fit [5, 2]"},
      {reshape({-1, 5}),
       {of({2, 3, 4})},
       "has an input of shape [2, 3, 4], which does not fit [-1, 5]"},
      {reshape({-1, 0}),
       {of({2, 3, 4})},
       "has an input of shape [2, 3, 4], which does not fit [-1, 0]"},
      {reshape({2}), {of({2, most, 2})}, "has an input with more elements than there can be"},
  });
}

TEST(LayerKinds, CountsThatTheyRefuse) {
  expect_refused({
      {layer_of("repeat"),
       {of({2, 3, 4})},
       "has an input of shape [2, 3, 4], expected 2" + kDimensions},
      {layer_of("repeat"),
       {of({2, 3}, DType::kInt32)},
       "has an input of int32, expected floating point"},
      {layer_of("repeat", {{"count", std::int64_t{0}}}),
       {of({2, 3})},
       "has count 0, expected 1 or more"},
      {layer_of("repeat", {{"count", std::int64_t{(1 << 20) + 1}}}),
       {of({2, 3})},
       "has count 1048577, expected at most 1048576"},
      {layer_of("time_mean"),
       {of({2, 3})},
       "has an input of shape [2, 3], expected 3" + kDimensions},
      {layer_of("time_mean"),
       {of({2, 3, 4}, DType::kInt32)},
       "has an input of int32, expected floating point"},
      {layer_of("time_mean"), {}, "has 0 inputs, expected 1"},
      {layer_of("time_mean"), {of({2}), of({2})}, "has 2 inputs, expected 1"},
      {layer_of("subtract"), {of({2})}, "has 1 inputs, expected 2"},
      {layer_of("add"), {}, "has 0 inputs, expected 1 or more"},
      {layer_of("input", {{"shape", Sizes{2}}}), {of({2})}, "has 1 inputs, expected 0"},
      {layer_of("masking", {{"mask_value", true}}),
       {of({2, 3, 4})},
       "has mask_value of another type, expected that of its default"},
  });
}

TEST(LayerKinds, WeightsThatDoNotFit) {
  const auto dense = [](std::vector<LayerWeight> weights) {
    return layer_of("dense", {{"units", std::int64_t{2}}}, std::move(weights));
  };
  const auto array = [](Shape shape, DType dtype = kReal) {
    return Array(dtype, std::move(shape));
  };
  const std::vector<LayerValue> x{of({-1, 3})};
  EXPECT_EQ(shown(outputs_of(dense({{"kernel", array({3, 2})}, {"bias", array({2})}}), x)),
            "[-1, 2]");
  LayerWeight slotted{"kernel", array({3, 2}), {{"m", array({2, 3})}}};
  expect_refused({
      {dense({{"kernel", array({3, 2})}}), x, "has 1 weights, expected 2"},
      {dense({{"bias", array({3, 2})}, {"bias", array({2})}}), x,
       "has the weight 'bias', expected 'kernel'"},
      {dense({{"kernel", array({2, 3})}, {"bias", array({2})}}), x,
       "has kernel float32 [2, 3], expected float32 [3, 2]"},
      {dense({{"kernel", array({3, 2})}, {"bias", array({2}, DType::kFloat64)}}), x,
       "has bias float64 [2], expected float32 [2]"},
      {dense({slotted, {"bias", array({2})}}), x,
       "has the slot 'm' float32 [2, 3], expected float32 [3, 2]"},
  });
  const auto embedding = [&](Shape shape, const char* name = "embeddings") {
    return layer_of("embedding", {{"vocabulary", std::int64_t{9}}, {"dim", std::int64_t{2}}},
                    {{name, array(std::move(shape))}});
  };
  const std::vector<LayerValue> ids{of({-1, 6}, DType::kInt32)};
  EXPECT_EQ(shown(outputs_of(embedding({9, 2}), ids)), "[-1, 6, 2]");
  expect_refused(
      {{embedding({8, 2}), ids, "has embeddings float32 [8, 2], expected float32 [9, 2]"},
       {embedding({9, 2}, "kernel"), ids, "has the weight 'kernel', expected 'embeddings'"}});
}

TEST(LayerKinds, RecurrentLayersThatTheyRefuse) {
  const auto rnn = [](const char* network, Options options = {}) {
    options["network"] = std::string(network);
    return layer_of("recurrent", std::move(options));
  };
  const LayerValue x = of({2, 7, 3});
  const std::vector<double> four(4), five(5);
  expect_refused({
      {rnn("no"), {x}, "has no network 'no', expected one"},
      {rnn("p"), {of({2, 7})}, "has input 0 float32 [2, 7], expected float32 [B, T, 3]"},
      {rnn("p"), {of({2, 7, 4})}, "has input 0 float32 [2, 7, 4], expected float32 [B, T, 3]"},
      {rnn("p"),
       {of({2, 7, 3}, DType::kFloat64)},
       "has input 0 float64 [2, 7, 3], expected float32 [B, T, 3]"},
      {rnn("p"), {x, of({2, 2})}, "has 1 initial states and 1 layers, expected 2 of one layer"},
      {rnn("s"),
       {x, of({2, 4}), of({2, 4})},
       "has 2 initial states and 2 layers, expected 2 of one layer"},
      {rnn("p"),
       {x, of({2, 5}), of({2, 5})},
       "has input 1 float32 [2, 5], expected float32 [B, 2], a state"},
      {rnn("p"),
       {x, of({2, 2}), of({2, 2})},
       "has input 2 float32 [2, 2], expected float32 [B, 5], a state"},
      {rnn("p"),
       {x, of({2, 2}), of({2, 5}, DType::kFloat64)},
       "has input 2 float64 [2, 5], expected float32 [B, 5], a state"},
      {rnn("p"),
       {x, of({2, 2, 1}), of({2, 5})},
       "has input 1 float32 [2, 2, 1], expected float32 [B, 2], a state"},
      {rnn("b"),
       {x, of({2, 4}), of({2, 5})},
       "has input 2 float32 [2, 5], expected float32 [B, 4], a state"},
      {rnn("p", {{"initial_h", five}}), {x}, "has 5 values of initial_h, expected 2 or none"},
      {rnn("p", {{"initial_c", four}}), {x}, "has 4 values of initial_c, expected 5 or none"},
      {rnn("b", {{"initial_h", four}}), {x}, "has 4 values of initial_h, expected 8 or none"},
      {rnn("b", {{"initial_c", four}}),
       {x},
       "has 4 values of initial_c, expected 0 without a cell state"},
      {rnn("p", {{"initial_h", std::vector<double>(2)}}),
       {x, of({2, 2}), of({2, 5})},
       "has initial_h and states as inputs, expected one of both"},
      {rnn("b", {{"merge", "max"}}),
       {x},
       "has merge 'max', expected concat, sum, ave, mul or none"},
      {rnn("p", {{"merge", "sum"}}), {x}, "has merge 'sum', expected concat of one direction"},
      {rnn("b", {{"reverse", true}}), {x}, "is reverse and bidirectional, expected one of both"},
      {rnn("s", {{"return_state", true}}), {x}, "returns states of 2 layers, expected one"},
  });
}

TEST(LayerKinds, MergesThatTheyRefuse) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto concat = [](std::int64_t axis) { return layer_of("concat", {{"axis", axis}}); };
  const std::string first = ", expected that of the first one, float32 [2, 3]";
  expect_refused({
      {layer_of("add"), {of({2, 3}), of({2, 3}), of({2, 4})}, "has input 2 float32 [2, 4]" + first},
      {layer_of("add"), {of({2, 3}), of({2, 3, 1})}, "has input 1 float32 [2, 3, 1]" + first},
      {layer_of("add"),
       {of({2, 3}), of({2, 3}, DType::kFloat64)},
       "has input 1 float64 [2, 3]" + first},
      {layer_of("add"),
       {of({2, 3}), of({2, 3}, DType::kInt32)},
       "has input 1 int32 [2, 3], expected floating point"},
      {layer_of("add"),
       {of({2, 3}), of({2, 3}, kReal, true)},
       "merges inputs with a mask, expected inputs without one"},
      {concat(0), {of({2, 3})}, "has axis 0, expected one behind the first of 2"},
      {concat(2), {of({2, 3})}, "has axis 2, expected one behind the first of 2"},
      {concat(-2), {of({2, 3})}, "has axis -2, expected one behind the first of 2"},
      {concat(-1), {of({2, 3}), of({3, 3})}, "has input 1 float32 [3, 3]" + first},
      {concat(-1), {of({2, most}), of({2, 1})}, "has more columns than there can be"},
  });
}

TEST(LayerKinds, ModelsThatTheyRefuse) {
  const auto refused = [](std::vector<MappedLayer> layers, std::vector<LayerOutput> outputs,
                          const std::string& why) {
    expect_error<ArgumentError>([&] { check_layers(layers, outputs, find_spec_in(model())); },
                                "[layers] " + why);
  };
  const MappedLayer input{.name = "x", .kind = "input", .options = {{"shape", Sizes{2}}}};
  const auto behind = [](const std::string& name, const std::string& from, std::int64_t index) {
    return MappedLayer{.name = name, .kind = "activation", .inputs = {{from, index}}};
  };
  refused({input, behind("", "x", 0)}, {{"x", 0}},
          "the layer '' (activation) has no name of its own, expected one");
  refused({input, behind("x", "x", 0)}, {{"x", 0}},
          "the layer 'x' (activation) has no name of its own, expected one");
  const auto output_of = [](const std::string& from, int index) {
    return message("the layer 'a' (activation) has output ", index, " of '", from,
                   "' as its input, expected one of a layer before it");
  };
  refused({input, behind("a", "y", 0)}, {{"x", 0}}, output_of("y", 0));
  refused({input, behind("a", "x", 1)}, {{"x", 0}}, output_of("x", 1));
  refused({input, behind("a", "x", -1)}, {{"x", 0}}, output_of("x", -1));
  refused({input}, {}, "no output, expected at least one");
  refused({input}, {{"x", 0}, {"y", 3}},
          "output 3 of 'y' is none of a layer of the model, expected one");
  const MappedLayer odd{.name = "o", .kind = "odd"};
  const std::string error = error_of<ArgumentError>([&] { outputs_of(odd, {}); });
  EXPECT_TRUE(
      error.starts_with("[layers] the kind of layer 'odd', expected one of input, embedding"))
      << error;
  expect_error<ArgumentError>([&] { layer_option(input, "units"); },
                              "[layers] the layer 'x' (input) has no option 'units'");
  const std::string option = error_of<ArgumentError>([&] {
    outputs_of(layer_of("dense", {{"axis", std::int64_t{1}}}), {of({2, 3})});
  });
  EXPECT_EQ(option,
            "[layers] the layer 'e' (dense) has the option 'axis', expected one of units, "
            "activation, use_bias, trainable");
}

TEST(LayerKinds, Functions) {
  const auto shown_as = [](const char* text) {
    const LayerFunction found = parse_layer_function(text);
    return message(found.name, " ", found.alpha, " ", found.beta);
  };
  EXPECT_EQ(shown_as("relu"), "relu 0 0");
  EXPECT_EQ(shown_as("hard_sigmoid"), "hard_sigmoid 0.2 0.5");
  EXPECT_EQ(shown_as("hard_sigmoid(0.25)"), "hard_sigmoid 0.25 0.5");
  EXPECT_EQ(shown_as("hard_sigmoid( 0.25,  0.75)"), "hard_sigmoid 0.25 0.75");
  EXPECT_EQ(shown_as("leaky_relu"), "leaky_relu 0.01 0");
  EXPECT_EQ(shown_as("elu()"), "elu 1 0");
  EXPECT_EQ(shown_as("clip"), "clip 0 6");
  EXPECT_EQ(shown_as("clip(-1,-1)"), "clip -1 -1");
  EXPECT_EQ(parse_layer_function("hard_silu").alpha, 1.0 / 6.0);
  const std::pair<const char*, int> wrong[] = {
      {"relu(1)", 0},          {"elu(1,2)", 1},  {"elu(x)", 1},
      {"elu(1x)", 1},          {"elu(inf)", 1},  {"hard_sigmoid(1,)", 2},
      {"hard_sigmoid(,1)", 2}, {"clip(2,1)", 2}, {"clip(1,2,3)", 2}};
  for (const auto& [text, count] : wrong) {
    const std::string given(text);
    expect_error<ArgumentError>([&] { parse_layer_function(given); },
                                message("[layers] the activation '", given, "', expected ",
                                        given.substr(0, given.find('(')), " with at most ", count,
                                        " numbers in parentheses"));
  }
  const std::string error = error_of<ArgumentError>([] { parse_layer_function("mish(1)"); });
  EXPECT_TRUE(error.starts_with("[layers] the activation 'mish(1)', expected one of linear, relu"))
      << error;
}

}  // namespace
}  // namespace openrnn
