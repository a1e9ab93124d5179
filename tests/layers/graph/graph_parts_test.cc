// The layers that a whole model is made of, its outputs, and dropout in its calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/graph/gru_model.h"
#include "layers/graph/values.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using layers::LayerGraph;

constexpr std::int64_t kUnits = 3, kWidth = 2;

// One layer of each kind that has a class; the outputs are the whole sequence and the last state.
MappedModel model_of_each_kind() {
  MappedModel model = gru_model(kUnits, kWidth);
  const Array table(DType::kFloat32, {4, kWidth}), kernel(DType::kFloat32, {kWidth, kWidth});
  model.layers = {
      ids_layer(),
      {.name = "words",
       .kind = "embedding",
       .inputs = {{"ids", 0}},
       .options = {{"vocabulary", std::int64_t{4}}, {"dim", kWidth}},
       .weights = {{"embeddings", table}}},
      {.name = "dense",
       .kind = "dense",
       .inputs = {{"words", 0}},
       .options = {{"units", kWidth}, {"use_bias", false}},
       .weights = {{"kernel", kernel}}},
      {.name = "drop", .kind = "dropout", .inputs = {{"dense", 0}}, .options = {{"rate", 0.5}}},
      {.name = "gru",
       .kind = "recurrent",
       .inputs = {{"drop", 0}},
       .options = {{"network", std::string("gru")}, {"return_state", true}}},
  };
  model.outputs = {{"gru", 0}, {"gru", 1}};
  return model;
}

TEST(LayerGraphParts, AreAllThereAndOfTheirClasses) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  const LayerGraph::Made& all = graph->layers();
  ASSERT_EQ(all.size(), 4U);
  const auto of = [&](const LayerGraph::Made& made) {
    return LayerGraph(graph->description(), graph->output_names(), made);
  };
  EXPECT_EQ(of(all).layers(), all);
  for (const auto& [name, layer] : all) {
    LayerGraph::Made made = all;
    made[name] = all.at(name == "dense" ? "gru" : "dense");
    const std::string kind = name == "words"  ? "embedding"
                             : name == "gru"  ? "recurrent"
                             : name == "drop" ? "dropout"
                                              : "dense";
    const std::string said = "[LayerGraph] the layer '" + name + "' (" + kind +
                             ") has no layer of its class, expected one";
    expect_error<ArgumentError>([&] { of(made); }, said);
    made.erase(name);
    expect_error<ArgumentError>([&] { of(made); }, said);
  }
  LayerGraph::Made unbuilt = all;
  unbuilt["dense"] = std::make_shared<layers::Dense>(layers::DenseOptions{.units = kWidth});
  expect_error<ArgumentError>(
      [&] { of(unbuilt); },
      "[LayerGraph] the layer 'dense' is not built, expected one with weights");
}

TEST(LayerGraphParts, WhatAFileLacksIsNamed) {
  MappedModel model = model_of_each_kind();
  model.layers[2].weights.clear();
  expect_error<ArgumentError>([&] { LayerGraph::of(model); },
                              "[LayerGraph] the layer 'dense' has 0 weights, expected 1");
  model.layers.clear();
  const std::string none =
      "[LayerGraph] the file has no whole model that is computed here, only 1 recurrent networks";
  expect_error<UnsupportedError>([&] { LayerGraph::of(model); }, none);
  model.notes = {"first", "last"};
  expect_error<UnsupportedError>([&] { LayerGraph::of(model); }, none + ": last");
}

TEST(LayerGraphParts, CallsAndNamesThatDoNotFitAreNamed) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  const std::string at = "[" + graph->name() + "] ";
  const Tensor ids(Array(DType::kInt32, {2, 3}).view()), flat(Array(DType::kInt32, {2}).view());
  expect_error<ArgumentError>([&] { (*graph)({ids, ids}); }, at + "2 inputs, expected 1");
  expect_error<ArgumentError>([&] { (*graph)({flat}); },
                              at + "inputs[0] is int32 [2], expected int32 [-1, -1]");
  expect_error<ArgumentError>([&] { graph->layer("none"); },
                              "[LayerGraph] no layer 'none', expected one of 'dense', 'drop', "
                              "'gru', 'words'");
}

TEST(LayerGraphParts, OutputsAreThoseOfTheirIndices) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  const std::vector<LayerValue> outputs = graph->outputs();
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].shape, (Shape{-1, -1, kUnits}));
  EXPECT_EQ(outputs[1].shape, (Shape{-1, kUnits}));
}

TEST(LayerGraphParts, ACallIsOfTrainingWhereItSaysSo) {
  MappedModel model;
  model.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, 40}}}},
      {.name = "drop", .kind = "dropout", .inputs = {{"x", 0}}, .options = {{"rate", 0.5}}}};
  model.outputs = {{"drop", 0}};
  Array ones(DType::kFloat32, {1, 40});
  std::fill_n(ones.as<float>().data(), ones.size(), 1.0F);
  const auto graph = LayerGraph::of(model);
  const auto dropped = [&](bool training) {
    const Array y = graph->call({Tensor(ones.view())}, training)[0].to_host();
    const auto values = y.as<float>();
    return std::count(values.begin(), values.end(), 0.0F);
  };
  EXPECT_GT(dropped(true), 0);
  EXPECT_EQ(dropped(false), 0);
}

TEST(LayerGraphParts, KnowsTheBatchOfASymbolicCall) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  const std::vector<Tensor> outputs = (*graph)({Input({4, -1}, DType::kInt32)});
  EXPECT_EQ(outputs[0].shape()[0], 4);
  EXPECT_EQ(outputs[1].shape(), (Shape{4, kUnits}));
}

TEST(LayerGraphParts, ACopyIsFrozenAsItsModel) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  graph->set_trainable(false);
  EXPECT_FALSE(graph->copy()->trainable());
}

TEST(LayerGraphParts, ADenseLayerHasTheDtypeOfItsInput) {
  MappedModel model;
  const Array kernel(DType::kFloat64, {2, 3});
  model.layers = {
      {.name = "x",
       .kind = "input",
       .options = {{"shape", std::vector<std::int64_t>{-1, 2}}, {"dtype", std::string("float64")}}},
      {.name = "dense",
       .kind = "dense",
       .inputs = {{"x", 0}},
       .options = {{"units", std::int64_t{3}}, {"use_bias", false}},
       .weights = {{"kernel", kernel}}}};
  model.outputs = {{"dense", 0}};
  const auto graph = LayerGraph::of(model);
  EXPECT_EQ(graph->layer("dense")->dtype(), DType::kFloat64);
  EXPECT_EQ(graph->predict({Tensor(Array(DType::kFloat64, {1, 2}).view())})[0].dtype(),
            DType::kFloat64);
}

// The formulas that define them, in float64.
TEST(LayerGraphParts, FunctionsAreTheirFormulas) {
  const std::vector<double> xs{-2.5, -0.75, 0.0, 0.4, 1.0, 3.5};
  const Tensor x(Array::of<double>({6}, xs).view());
  const auto expect = [&](const LayerFunction& function, const auto& formula) {
    const Array y = layers::apply_function(function, x).to_host();
    for (std::size_t i = 0; i < xs.size(); ++i) {
      EXPECT_NEAR(y.as<double>()[i], formula(xs[i]), 1e-13) << function.name << " of " << xs[i];
    }
  };
  const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
  expect({.name = "linear"}, [](double v) { return v; });
  expect({.name = "relu"}, [](double v) { return std::max(v, 0.0); });
  expect({.name = "tanh"}, [](double v) { return std::tanh(v); });
  expect({.name = "sigmoid"}, sigmoid);
  expect({.name = "exponential"}, [](double v) { return std::exp(v); });
  expect({.name = "softsign"}, [](double v) { return v / (1.0 + std::abs(v)); });
  expect({.name = "silu"}, [&](double v) { return v * sigmoid(v); });
  expect({.name = "hard_sigmoid", .alpha = 0.25, .beta = 0.375},
         [](double v) { return std::clamp(0.25 * v + 0.375, 0.0, 1.0); });
  expect({.name = "leaky_relu", .alpha = 0.375}, [](double v) { return v > 0.0 ? v : 0.375 * v; });
  expect({.name = "elu", .alpha = 0.375},
         [](double v) { return v > 0.0 ? v : 0.375 * (std::exp(v) - 1.0); });
  expect({.name = "clip", .alpha = -0.5, .beta = 0.75},
         [](double v) { return std::clamp(v, -0.5, 0.75); });
  double sum = 0.0;
  for (const double v : xs) sum += std::exp(v);
  expect({.name = "softmax"}, [&](double v) { return std::exp(v) / sum; });
  expect_error<ArgumentError>([&] { layers::apply_function({.name = "mish"}, x); },
                              "[layers] the activation 'mish' is not computed");
  expect({.name = "gelu_tanh"}, [](double v) {
    return 0.5 * v * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v)));
  });
  expect({.name = "selu"}, [](double v) {
    return 1.0507009873554805 * (v > 0.0 ? v : 1.6732632423543772 * (std::exp(v) - 1.0));
  });
  expect({.name = "hard_silu", .alpha = 0.25, .beta = 0.375},
         [](double v) { return v * std::clamp(0.25 * v + 0.375, 0.0, 1.0); });
}

// The name of a layer in its file says nothing of its place.
TEST(LayerGraphParts, WeightsComeInTheOrderOfTheModel) {
  const auto graph = LayerGraph::of(model_of_each_kind());
  const std::vector<std::string> order{"words", "dense", "drop", "gru"};
  std::vector<Layer*> layers;
  std::vector<std::string> parts;
  for (const std::string& name : order) layers.push_back(graph->layer(name).get());
  for (const LayerPart& part : graph->parts()) parts.push_back(part.name);
  EXPECT_EQ(parts, order);
  EXPECT_EQ(graph->sublayers(), layers);
  std::vector<Shape> shapes;
  for (const Variable& variable : graph->weights()) shapes.push_back(variable.shape());
  const std::int64_t params = params_size(gru_model(kUnits, kWidth).networks[0].spec);
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, kWidth}, {kWidth, kWidth}, {params}}));
}

// A file has no scopes: its names are those of the weights within their layers.
TEST(LayerGraphParts, WeightsHaveTheirNamesInAnyScope) {
  MappedModel model = model_of_each_kind();
  model.layers[2].options["use_bias"] = true;
  model.layers[2].weights.push_back({"bias", Array(DType::kFloat32, {kWidth})});
  const auto names_of = [](const MappedModel& of) {
    std::vector<std::string> names;
    for (const MappedLayer& layer : of.layers) {
      for (const LayerWeight& weight : layer.weights) {
        names.push_back(layer.name + ":" + weight.name);
      }
    }
    return names;
  };
  const std::vector<std::string> names{"words:embeddings", "dense:kernel", "dense:bias"};
  EXPECT_EQ(names_of(model), names);
  for (const int depth : {0, 1, 2, 3}) {
    Graph own;
    const Graph::AsDefault current(own);
    std::vector<std::unique_ptr<VariableScope>> scopes;
    for (int i = 0; i < depth; ++i) {
      scopes.push_back(std::make_unique<VariableScope>("scope_" + std::to_string(i)));
    }
    const auto graph = LayerGraph::of(model);
    EXPECT_EQ(names_of(graph->to_model()), names) << depth;
    EXPECT_EQ(names_of(LayerGraph::of(graph->to_model())->to_model()), names) << depth;
  }
}

TEST(LayerGraphParts, AnEmbeddingHasTheDtypeOfItsModel) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    MappedModel model;
    Array table(dtype, {4, kWidth});
    model.layers = {ids_layer(),
                    {.name = "words",
                     .kind = "embedding",
                     .inputs = {{"ids", 0}},
                     .options = {{"vocabulary", std::int64_t{4}},
                                 {"dim", kWidth},
                                 {"dtype", std::string(dtype_name(dtype))}},
                     .weights = {{"embeddings", table}}}};
    model.outputs = {{"words", 0}};
    const auto graph = LayerGraph::of(model);
    EXPECT_EQ(graph->weights().at(0).dtype(), dtype);
    EXPECT_EQ(graph->layer("words")->dtype(), dtype);
  }
}

TEST(LayerGraphParts, ADropoutLayerHasTheRateOfItsModel) {
  for (const double rate : {0.0, 0.125, 0.25, 0.75, 1.0}) {
    MappedModel model = model_of_each_kind();
    model.layers[3].options["rate"] = rate;
    const auto graph = LayerGraph::of(model);
    const auto drop = std::dynamic_pointer_cast<layers::Dropout>(graph->layer("drop"));
    ASSERT_TRUE(drop);
    EXPECT_EQ(drop->get_config().rate, rate);
    EXPECT_EQ(std::get<double>(graph->to_model().layers[3].options.at("rate")), rate);
  }
}

// Each option of a layer of the file is one of the layer that is made, at two values of each.
TEST(LayerGraphParts, HaveTheOptionsOfTheirModel) {
  for (const bool other : {false, true}) {
    MappedModel model = model_of_each_kind();
    model.layers[1].options["trainable"] = other;
    model.layers[2].options["trainable"] = !other;
    model.layers[2].options["activation"] = std::string(other ? "tanh" : "relu");
    model.layers[4].options["trainable"] = other;
    const auto graph = LayerGraph::of(model);
    const auto words = std::dynamic_pointer_cast<layers::Embedding>(graph->layer("words"));
    const auto dense = std::dynamic_pointer_cast<layers::Dense>(graph->layer("dense"));
    const auto gru = std::dynamic_pointer_cast<layers::GRU>(graph->layer("gru"));
    ASSERT_TRUE(words && dense && gru);
    EXPECT_EQ(words->get_config().vocabulary, 4);
    EXPECT_EQ(words->get_config().dim, kWidth);
    EXPECT_EQ(words->trainable(), other);
    EXPECT_EQ(dense->get_config().units, kWidth);
    EXPECT_FALSE(dense->get_config().use_bias);
    EXPECT_EQ(dense->get_config().activation,
              other ? layers::Activation::kTanh : layers::Activation::kRelu);
    EXPECT_EQ(dense->trainable(), !other);
    EXPECT_EQ(gru->network().num_units, kUnits);
    EXPECT_EQ(gru->input_size(), kWidth);
    EXPECT_EQ(gru->trainable(), other);
  }
}

}  // namespace
}  // namespace openrnn
