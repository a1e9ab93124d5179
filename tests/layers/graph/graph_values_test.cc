// What each kind of layer of a model computes, by hand, and the states that recurrent ones take.
#include <gtest/gtest.h>

#include <cmath>

#include "cells/support.h"
#include "layers/graph/gru_model.h"
#include "ops/check_gradient.h"

namespace openrnn {
namespace {

using layers::LayerGraph;
using openrnn::testing::same_bits;
using openrnn::testing::values_of;
using openrnn::testing::varied;
using Numbers = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

Tensor of(const Shape& shape, const Numbers& values) {
  return Tensor(cast(Array::of<double>(shape, values).view(), DType::kFloat32).view());
}

/// A model of those layers behind inputs of the values' shapes, each size but the last one open.
std::vector<Tensor> run(const std::vector<Tensor>& values, std::vector<MappedLayer> layers,
                        std::int64_t outputs = 1) {
  MappedModel model;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Sizes shape(values[i].shape().size(), -1);
    shape.back() = values[i].shape().back();
    model.layers.push_back(
        {.name = "in" + std::to_string(i), .kind = "input", .options = {{"shape", shape}}});
  }
  const std::string last = layers.back().name;
  for (MappedLayer& layer : layers) model.layers.push_back(std::move(layer));
  for (std::int64_t i = 0; i < outputs; ++i) model.outputs.push_back({last, i});
  return LayerGraph::of(model)->call(values);
}

MappedLayer layer_of(const std::string& kind, std::map<std::string, PlainValue> options = {},
                     std::size_t inputs = 1) {
  MappedLayer layer{.name = kind, .kind = kind, .options = std::move(options)};
  for (std::size_t i = 0; i < inputs; ++i) layer.inputs.push_back({"in" + std::to_string(i), 0});
  return layer;
}

TEST(LayerGraphValues, OfElementwiseMerges) {
  const Tensor a = of({2, 2}, {1, 2, 3, 4}), b = of({2, 2}, {5, -6, 7, 8}),
               c = of({2, 2}, {0.5, 4, -2, 16});
  const auto merged = [&](const std::string& kind, const std::vector<Tensor>& values) {
    return values_of(run(values, {layer_of(kind, {}, values.size())})[0]);
  };
  EXPECT_EQ(merged("add", {a, b, c}), (Numbers{6.5, 0, 8, 28}));
  EXPECT_EQ(merged("subtract", {a, b}), (Numbers{-4, 8, -4, -4}));
  EXPECT_EQ(merged("multiply", {a, b, c}), (Numbers{2.5, -48, -42, 512}));
  EXPECT_EQ(merged("average", {a, b}), (Numbers{3, -2, 5, 6}));
  EXPECT_EQ(merged("average", {a, a, b, c}), (Numbers{1.875, 0.5, 2.75, 8}));
  for (const std::string kind : {"add", "multiply", "average"}) {
    EXPECT_EQ(merged(kind, {b}), values_of(b)) << kind;
  }
}

TEST(LayerGraphValues, OfConcatenations) {
  const Tensor a = of({1, 2, 2}, {1, 2, 3, 4}), b = of({1, 2, 1}, {5, 6}),
               c = of({1, 1, 2}, {7, 8});
  for (const std::int64_t axis : {2, -1}) {
    const Tensor found = run({a, b, a}, {layer_of("concat", {{"axis", axis}}, 3)})[0];
    EXPECT_EQ(found.shape(), (Shape{1, 2, 5}));
    EXPECT_EQ(values_of(found), (Numbers{1, 2, 5, 1, 2, 3, 4, 6, 3, 4}));
  }
  for (const std::int64_t axis : {1, -2}) {
    const Tensor found = run({a, c}, {layer_of("concat", {{"axis", axis}}, 2)})[0];
    EXPECT_EQ(found.shape(), (Shape{1, 3, 2}));
    EXPECT_EQ(values_of(found), (Numbers{1, 2, 3, 4, 7, 8}));
  }
}

TEST(LayerGraphValues, OfShapes) {
  const Tensor x = of({2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const Sizes& sizes : {Sizes{2, 2}, Sizes{-1, 2}, Sizes{2, -1}, Sizes{4}, Sizes{-1}}) {
    const Tensor found = run({x}, {layer_of("reshape", {{"shape", sizes}})})[0];
    EXPECT_EQ(found.shape(), sizes.size() == 2 ? (Shape{2, 2, 2}) : (Shape{2, 4}));
    EXPECT_EQ(values_of(found), values_of(x));
  }
  const Tensor none = run({Tensor(Array(DType::kFloat32, {0, 1, 4}).view())},
                          {layer_of("reshape", {{"shape", Sizes{-1, 2}}})})[0];
  EXPECT_EQ(none.shape(), (Shape{0, 2, 2}));
  const Tensor repeated =
      run({of({2, 2}, {1, 2, 3, 4})}, {layer_of("repeat", {{"count", std::int64_t{3}}})})[0];
  EXPECT_EQ(repeated.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(values_of(repeated), (Numbers{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(LayerGraphValues, OfMeansOverTime) {
  const Tensor x = of({2, 4, 2}, {1, 8, 3, 0, 0, 0, 4, 2, 0, 0, 0, 0, 5, 1, 0, 7});
  const Tensor plain = run({x}, {layer_of("time_mean")})[0];
  EXPECT_EQ(plain.shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of(plain), (Numbers{2, 2.5, 1.25, 2}));
  MappedLayer mean = layer_of("time_mean");
  mean.inputs = {{"masking", 0}};
  // A step of zeros alone does not count.
  EXPECT_EQ(values_of(run({x}, {layer_of("masking"), mean})[0]),
            (Numbers{8.0F / 3.0F, 10.0F / 3.0F, 2.5, 4}));
  // What a masked step holds is not looked at; a row of such steps has no mean.
  const Tensor found =
      run({of({2, 2, 1}, {9, 3, 9, 9})}, {layer_of("masking", {{"mask_value", 9.0}}), mean})[0];
  EXPECT_EQ(values_of(found)[0], 3.0);
  EXPECT_TRUE(std::isnan(values_of(found)[1]));
}

TEST(LayerGraphValues, OfMaskedSteps) {
  const Tensor x = of({1, 3, 2}, {2, 2, 2, 5, NAN, 2});
  const Numbers found = values_of(run({x}, {layer_of("masking", {{"mask_value", 2.0}})})[0]);
  EXPECT_EQ(Numbers(found.begin(), found.begin() + 4), (Numbers{0, 0, 2, 5}));
  EXPECT_TRUE(std::isnan(found[4])) << "NaN is another value";
  EXPECT_EQ(found[5], 2.0);
}

TEST(LayerGraphValues, OfDenseLayersWithEveryFunction) {
  const Array kernel = Array::of<float>({2, 3}, {{1, 0, -1, 0, 1, 2}}),
              bias = Array::of<float>({3}, {{0.5F, -0.25F, 0}});
  const Tensor x = of({2, 2}, {1, 2, -3, 0.5});
  const Tensor sums = of({2, 3}, {1.5, 1.75, 3, -2.5, 0.25, 4});
  for (const std::string& name :
       {std::string("linear"), std::string("relu"), std::string("tanh"), std::string("sigmoid"),
        std::string("softmax"), std::string("elu(0.5)"), std::string("hard_sigmoid(0.25,0.5)"),
        std::string("softsign")}) {
    MappedLayer dense =
        layer_of("dense", {{"units", std::int64_t{3}}, {"activation", name}, {"use_bias", true}});
    dense.weights = {{"kernel", kernel}, {"bias", bias}};
    const Tensor wanted = run({sums}, {layer_of("activation", {{"activation", name}})})[0];
    EXPECT_EQ(values_of(run({x}, {dense})[0]), values_of(wanted)) << name;
    EXPECT_EQ(values_of(wanted) == values_of(sums), name == "linear") << name;
  }
}

/// A recurrent layer on 'in0', with further inputs as its states.
MappedModel recurrent(const RnnSpec& spec, std::map<std::string, PlainValue> options,
                      const std::vector<std::int64_t>& states = {}) {
  MappedModel model;
  model.networks.push_back({.name = "net",
                            .spec = spec,
                            .params = initialize_params(ParamsLayout(spec), 7, {},
                                                        random_uniform_initializer(-0.5, 0.5))});
  options["network"] = std::string("net");
  model.layers.push_back(
      {.name = "in0", .kind = "input", .options = {{"shape", Sizes{-1, -1, spec.input_size}}}});
  for (const std::int64_t width : states) {
    model.layers.push_back({.name = "in" + std::to_string(model.layers.size()),
                            .kind = "input",
                            .options = {{"shape", Sizes{-1, width}}}});
  }
  MappedLayer layer = layer_of("recurrent", std::move(options), 1 + states.size());
  model.layers.push_back(std::move(layer));
  model.outputs = {{"recurrent", 0}};
  return model;
}

// [B, width] of each direction as [B, D, width].
Tensor joined(const std::vector<Tensor>& parts) {
  return ops::transpose_leading(ops::stack(parts));
}

TEST(LayerGraphValues, InputsOfARecurrentLayerAreItsStates) {
  const RnnSpec lstm{.num_units = 3, .input_size = 2, .num_proj = 2};
  RnnSpec both = lstm, gru{.mode = RnnMode::kGru, .num_units = 3, .input_size = 2};
  both.direction = Direction::kBidirectional;
  const Tensor x = varied({4, 5, 2}, 1);
  const auto check = [&](const RnnSpec& spec, const std::vector<std::int64_t>& widths) {
    SCOPED_TRACE(describe(spec));
    MappedModel model = recurrent(spec, {{"return_state", true}}, widths);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      model.outputs.push_back({"recurrent", static_cast<std::int64_t>(i + 1)});
    }
    std::vector<Tensor> values{x}, h, c;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      values.push_back(varied({4, widths[i]}, 5 + i));
      (spec.has_cell() && i % 2 == 1 ? c : h).push_back(values.back());
    }
    const auto graph = LayerGraph::of(model);
    const std::vector<Tensor> found = graph->call(values);
    const auto layer = std::dynamic_pointer_cast<layers::CudnnRnn>(graph->layer("recurrent"));
    std::vector<Tensor> states{joined(h)};
    if (spec.has_cell()) states.push_back(joined(c));
    const layers::RnnResult wanted = (*layer)(x, states, {.time_major = false, .training = false});
    EXPECT_EQ(values_of(found[0]), values_of(wanted.output));
    ASSERT_EQ(found.size(), widths.size() + 1);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::size_t kinds = spec.has_cell() ? 2 : 1;
      const Tensor row =
          ops::slice(wanted.state[i % kinds],
                     {.axis = 1, .begin = static_cast<std::int64_t>(i / kinds), .size = 1});
      EXPECT_EQ(found[i + 1].shape(), (Shape{4, widths[i]}));
      EXPECT_EQ(values_of(found[i + 1]), values_of(row)) << i;
    }
  };
  check(lstm, {2, 3});
  check(both, {2, 3, 2, 3});
  check(gru, {3});
  gru.direction = Direction::kBidirectional;
  check(gru, {3, 3});
}

// Of several layers and directions the last output is of the last layer, each direction's last
// step.
TEST(LayerGraphValues, TheLastOutputIsThatOfTheLastLayer) {
  for (const bool both : {false, true}) {
    const RnnSpec spec{.num_layers = 2,
                       .num_units = 3,
                       .input_size = 2,
                       .direction = both ? Direction::kBidirectional : Direction::kUnidirectional};
    const Tensor x = varied({4, 5, 2}, 1);
    const Tensor all = LayerGraph::of(recurrent(spec, {}))->call({x})[0];
    const Tensor last =
        LayerGraph::of(recurrent(spec, {{"return_sequences", false}}))->call({x})[0];
    const auto step = [&](std::int64_t t, std::int64_t begin) {
      return values_of(ops::slice(ops::slice(all, {.axis = 1, .begin = t, .size = 1}),
                                  {.axis = 2, .begin = begin, .size = 3}));
    };
    EXPECT_EQ(values_of(ops::slice(last, {.axis = 1, .begin = 0, .size = 3})), step(4, 0));
    if (!both) continue;
    EXPECT_EQ(values_of(ops::slice(last, {.axis = 1, .begin = 3, .size = 3})), step(0, 3));
  }
}

// A layer that goes back gives what it gives for the steps in reverse.
TEST(LayerGraphValues, AReversedLayerReadsFromTheEnd) {
  const RnnSpec spec{.num_units = 3, .input_size = 2};
  const Tensor x = varied({4, 5, 2}, 1), back = ops::reverse_sequence(x, {}, false);
  for (const bool sequences : {false, true}) {
    const auto output = [&](bool reverse, const Tensor& given) {
      return LayerGraph::of(
                 recurrent(spec, {{"reverse", reverse}, {"return_sequences", sequences}}))
          ->call({given})[0];
    };
    EXPECT_TRUE(same_bits(output(true, x).to_host(), output(false, back).to_host()));
    EXPECT_FALSE(same_bits(output(true, x).to_host(), output(false, x).to_host()));
  }
}

}  // namespace
}  // namespace openrnn
