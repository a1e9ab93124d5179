// Names, shapes, initial values and saveables of the recurrent layers.
#include <cmath>
#include <set>

#include "cells/support.h"
#include "openrnn/layers.h"

namespace openrnn {
namespace {

using layers::CudnnGRU;
using layers::CudnnLSTM;
using layers::make_cudnn_rnn;
using testing::OwnGraph;
using testing::same_bits;

Tensor zeros(Shape shape, DType dtype = DType::kFloat32) {
  return Tensor(Array(dtype, std::move(shape)).view());
}

TEST(CudnnLayer, DefaultsAndProperties) {
  const OwnGraph own;
  CudnnLSTM layer({.num_layers = 2, .num_units = 3});
  EXPECT_EQ(layer.network().num_layers, 2);
  EXPECT_EQ(layer.network().num_units, 3);
  EXPECT_EQ(layer.network().num_dirs(), 1);
  EXPECT_EQ(layer.network().input_mode, InputMode::kLinearInput);
  EXPECT_EQ(layer.network().direction, Direction::kUnidirectional);
  EXPECT_EQ(layer.network().mode, RnnMode::kLstm);
  EXPECT_EQ(layer.dtype(), DType::kFloat32);
  EXPECT_EQ(layer.saveable(), nullptr);
  EXPECT_FALSE(layer.built());
  EXPECT_EQ(layer.canonical_bias_shapes(), std::vector<Shape>(16, Shape{3}));
  EXPECT_EQ(layer.state_shape(5), (std::vector<Shape>{{2, 5, 3}, {2, 5, 3}}));
  layer.build({-1, -1, 4});
  EXPECT_EQ(layer.input_size(), 4);
  EXPECT_EQ(layer.count_params(), 4 * 3 * (4 + 3) + 4 * 3 * (3 + 3) + 2 * 8 * 3);
  std::vector<Shape> shapes(4, Shape{3, 4});
  shapes.insert(shapes.end(), 12, Shape{3, 3});
  EXPECT_EQ(layer.canonical_weight_shapes(), shapes);
}

TEST(CudnnLayer, ShapesOfOtherNetworks) {
  const OwnGraph own;
  const auto gru = make_cudnn_rnn({.network = {.mode = RnnMode::kGru,
                                               .num_layers = 2,
                                               .num_units = 3,
                                               .input_mode = InputMode::kAutoSelect,
                                               .direction = Direction::kBidirectional}});
  EXPECT_EQ(gru->state_shape(2), (std::vector<Shape>{{4, 2, 3}}));
  gru->build({1, 1, 3});
  EXPECT_EQ(gru->network().input_mode, InputMode::kAutoSelect);
  const std::vector<Shape> shapes = gru->canonical_weight_shapes();
  ASSERT_EQ(shapes.size(), 24u);
  EXPECT_EQ(shapes[0], (Shape{3, 0}));  // skipped
  EXPECT_EQ(shapes[3], (Shape{3, 3}));
  EXPECT_EQ(shapes[6], (Shape{3, 0}));
  EXPECT_EQ(shapes[12], (Shape{3, 6}));
  CudnnLSTM projecting({.num_units = 5, .num_proj = 2});
  EXPECT_EQ(projecting.state_shape(4), (std::vector<Shape>{{1, 4, 2}, {1, 4, 5}}));
}

TEST(CudnnLayer, CanonicalBiasesAreThoseOfItsLayout) {
  const OwnGraph own;
  const RnnSpec networks[] = {{.num_units = 3},
                              {.num_units = 3, .use_peepholes = true},
                              {.num_units = 3, .single_bias = true},
                              {.num_layers = 2, .num_units = 3, .layer_norm = LayerNorm::kProducts},
                              {.num_units = 3,
                               .direction = Direction::kBidirectional,
                               .layer_norm = LayerNorm::kGates,
                               .layer_norm_cell = LayerNormCell::kCarried}};
  for (const RnnSpec& network : networks) {
    const auto layer = make_cudnn_rnn({.network = network});
    const std::vector<Shape> shapes = layer->canonical_bias_shapes();
    layer->build({1, 1, 4});
    const ParamsLayout layout(layer->spec());
    ASSERT_EQ(shapes.size(), layout.biases().size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(shape_size(shapes[i]), layout.biases()[i].size());
    }
  }
}

TEST(CudnnLayer, NamesOfVariablesAndScopes) {
  const OwnGraph own;
  std::vector<std::unique_ptr<layers::CudnnRnn>> held;
  for (const auto& [mode, name] :
       std::vector<std::pair<RnnMode, std::string>>{{RnnMode::kLstm, "cudnn_lstm"},
                                                    {RnnMode::kGru, "cudnn_gru"},
                                                    {RnnMode::kRnnTanh, "cudnn_rnn_tanh"},
                                                    {RnnMode::kRnnRelu, "cudnn_rnn_relu"}}) {
    for (const char* suffix : {"", "_1"}) {
      auto layer = make_cudnn_rnn({.network = {.mode = mode, .num_units = 2}});
      layer->build({1, 1, 2});
      EXPECT_EQ(layer->name(), name + suffix);
      EXPECT_EQ(layer->kernel().name(), name + suffix + "/opaque_kernel");
      EXPECT_EQ(layer->saveable()->name(), name + suffix + "/opaque_kernel_saveable");
      held.push_back(std::move(layer));
    }
  }
  EXPECT_EQ(own.graph.saveables().size(), 8u);
  held.pop_back();
  EXPECT_EQ(own.graph.saveables().size(), 7u);
  EXPECT_EQ(own.graph.variables().size(), 7u);
}

// Explicit: the scope around the build. From a call: the layer's own.
TEST(CudnnLayer, PrefixOfTheCanonicalNames) {
  const OwnGraph own;
  const std::string canonical = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel";
  const auto first_name = [](const CudnnLSTM& layer) { return layer.saveable()->spec_names()[0]; };
  CudnnLSTM top({.num_units = 2}), inside({.num_units = 2}), called({.num_units = 2});
  CudnnLSTM outside({.network = {.num_units = 2}, .name = "named"});
  top.build({1, 1, 2});
  outside(zeros({1, 1, 2}));
  {
    const VariableScope scope("m1");
    inside.build({1, 1, 2});
    called(zeros({1, 1, 2}));
  }
  EXPECT_EQ(first_name(top), canonical);
  EXPECT_EQ(first_name(inside), "m1/" + canonical);
  EXPECT_EQ(inside.kernel().name(), "m1/cudnn_lstm/opaque_kernel");
  EXPECT_EQ(first_name(called), "m1/cudnn_lstm_1/" + canonical);
  EXPECT_EQ(first_name(outside), "named/" + canonical);
}

TEST(CudnnLayer, AReusingScopeSharesTheVariableAndMakesNoSaveable) {
  const OwnGraph own;
  CudnnLSTM first({.network = {.num_units = 2}, .name = "enc"}),
      second({.network = {.num_units = 2}, .name = "enc"});
  {
    const VariableScope scope("m");
    first(zeros({1, 1, 2}));
  }
  const VariableScope scope("m", true);
  second(zeros({1, 1, 2}));
  EXPECT_TRUE(second.kernel().same_as(first.kernel()));
  EXPECT_EQ(second.saveable(), nullptr);
  EXPECT_EQ(own.graph.saveables().size(), 1u);
}

// Each canonical matrix draws from its own stream and within its own Glorot limit.
TEST(CudnnLayer, InitialValues) {
  const OwnGraph own;
  CudnnGRU layer({.num_layers = 2, .num_units = 6, .training = {.seed = 3}});
  layer.build({1, 1, 4});
  const RnnSpec spec = layer.spec();
  const ParamsLayout layout(spec);
  const CanonicalParams params = params_to_canonical(layout, layer.kernel().to_host().view());
  std::set<double> firsts;
  for (const Array& weight : params.weights) {
    const double limit =
        std::sqrt(6.0 / static_cast<double>(weight.shape()[0] + weight.shape()[1]));
    double largest = 0.0;
    for (const float w : weight.as<float>()) largest = std::max<double>(largest, std::abs(w));
    EXPECT_LE(largest, limit);
    EXPECT_GT(largest, 0.7 * limit);
    firsts.insert(element(weight.view(), 0));
  }
  EXPECT_EQ(firsts.size(), params.weights.size());
  for (const Array& bias : params.biases) {
    for (const float b : bias.as<float>()) EXPECT_EQ(b, 0.0f);
  }
}

TEST(CudnnLayer, InitializersAndSeeds) {
  const OwnGraph own;
  const auto kernel_of = [](std::optional<std::int64_t> seed,
                            std::optional<std::int64_t> of_graph = std::nullopt) {
    Graph graph;
    graph.set_seed(of_graph);
    const Graph::AsDefault current(graph);
    CudnnLSTM layer({.network = {.num_units = 4, .training = {.seed = seed}},
                     .bias_initializer = constant_initializer(0.5)});
    layer.build({1, 1, 3});
    return layer.kernel().to_host();
  };
  EXPECT_TRUE(same_bits(kernel_of(1), kernel_of(1)));
  EXPECT_FALSE(same_bits(kernel_of(1), kernel_of(2)));
  EXPECT_FALSE(same_bits(kernel_of(1), kernel_of(std::nullopt)));
  // A layer's seed, 0 too, stands for itself whatever the graph's is.
  for (const std::int64_t seed : {0, 1, -1}) {
    EXPECT_TRUE(same_bits(kernel_of(seed, 5), kernel_of(seed))) << seed;
    EXPECT_FALSE(same_bits(kernel_of(seed, 5), kernel_of(std::nullopt, 5))) << seed;
  }
  const Array kernel = kernel_of(1);
  for (const float b : kernel.as<float>().subspan(std::size_t{4} * 4 * (3 + 4))) EXPECT_EQ(b, 0.5f);
  int calls = 0;
  CudnnGRU counted({.network = {.num_layers = 2, .num_units = 2},
                    .kernel_initializer = [&](ArrayView, RandomStream&) { ++calls; }});
  counted.build({1, 1, 2});
  EXPECT_EQ(calls, 12);
}

}  // namespace
}  // namespace openrnn
