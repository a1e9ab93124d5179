// Every class of layers by table: names, options, seeds, shapes and copies.
#include "cells/support.h"
#include "openrnn/layers.h"
#include "openrnn/runtime.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

using namespace layers;
using testing::same;
using testing::same_bits;
using testing::test_device;
using testing::thrown;
using testing::value_of;
using testing::varied;

class Classes : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

struct RecurrentClass {
  std::string class_name, name;
  RnnMode mode;
  std::function<std::shared_ptr<CudnnRnn>(CudnnRnnOptions)> make, from_config;
};

template <class L>
RecurrentClass of_class(std::string class_name, std::string name, RnnMode mode) {
  return {std::move(class_name), std::move(name), mode,
          [](CudnnRnnOptions options) { return std::make_shared<L>(std::move(options)); },
          [](CudnnRnnOptions options) { return L::from_config(std::move(options)); }};
}

std::vector<RecurrentClass> recurrent_classes() {
  return {of_class<CudnnLSTM>("CudnnLSTM", "cudnn_lstm", RnnMode::kLstm),
          of_class<CudnnGRU>("CudnnGRU", "cudnn_gru", RnnMode::kGru),
          of_class<CudnnRNNTanh>("CudnnRNNTanh", "cudnn_rnn_tanh", RnnMode::kRnnTanh),
          of_class<CudnnRNNRelu>("CudnnRNNRelu", "cudnn_rnn_relu", RnnMode::kRnnRelu),
          of_class<LSTM>("LSTM", "lstm", RnnMode::kLstm),
          of_class<GRU>("GRU", "gru", RnnMode::kGru),
          of_class<RNN>("RNN", "rnn", RnnMode::kRnnTanh)};
}

TEST_F(Classes, SayTheirOwnNames) {
  for (const RecurrentClass& one : recurrent_classes()) {
    SCOPED_TRACE(one.class_name);
    const CudnnRnnOptions options{.network = {.num_units = 3}};
    const auto layer = one.make(options);
    EXPECT_EQ(layer->name(), one.name);
    EXPECT_EQ(layer->network().mode, one.mode);
    for (const auto& [property, ask] : std::vector<std::pair<std::string, std::function<void()>>>{
             {"canonical_weight_shapes", [&] { layer->canonical_weight_shapes(); }},
             {"canonical_weight_shape", [&] { layer->canonical_weight_shape(0); }},
             {"canonical_to_opaque", [&] { layer->canonical_to_opaque({}, {}); }},
             {"create_saveable", [&] { layer->create_saveable(); }},
             {"with_arithmetic", [&] { layer->with_arithmetic(Math::kFloat32, {}); }}}) {
      EXPECT_EQ(thrown<StateError>(ask), "[" + one.class_name + "] " + property + " of '" +
                                             one.name +
                                             "' before the input shape is known, expected a build "
                                             "or a call before");
    }
    layer->build({-1, -1, 4});
    EXPECT_EQ(layer->input_size(), 4);
    for (const auto& other : {one.from_config(layer->get_config()), layer->clone(),
                              layer->with_arithmetic(Math::kFloat32, {})}) {
      const Layer &made = *other, &original = *layer;
      EXPECT_TRUE(typeid(made) == typeid(original));
      EXPECT_EQ(other->network(), layer->network());
      EXPECT_EQ(other->name(), one.name);
    }
  }
}

TEST_F(Classes, AConfigurationHasEachOption) {
  for (const RecurrentClass& one : recurrent_classes()) {
    SCOPED_TRACE(one.class_name);
    const RnnSpec network{.mode = one.mode,
                          .num_layers = 2,
                          .num_units = 4,
                          .direction = Direction::kBidirectional,
                          .dtype = DType::kFloat64,
                          .training = {.dropout = 0.25, .seed = 7}};
    const auto layer =
        one.make({.network = network,
                  .kernel_initializer = constant_initializer(0.5),
                  .bias_initializer = constant_initializer(-0.25),
                  .name = "mine",
                  .trainable = false,
                  .activity_regularizer = [](const Tensor& y) { return ops::reduce_sum(y); }});
    const CudnnRnnOptions config = layer->get_config();
    EXPECT_EQ(config.network, network);
    EXPECT_EQ(value_of(config.kernel_initializer), 0.5);
    EXPECT_EQ(value_of(config.bias_initializer), -0.25);
    EXPECT_EQ(config.name, "mine");
    EXPECT_FALSE(config.trainable);
    ASSERT_TRUE(config.activity_regularizer);
    EXPECT_EQ(layer->dtype(), DType::kFloat64);
    EXPECT_FALSE(layer->trainable());
    EXPECT_TRUE(layer->activity_regularizer());
    layer->build({-1, -1, 3});
    const CanonicalParams params =
        params_to_canonical(ParamsLayout(layer->spec()), layer->kernel().to_host().view());
    for (const Array& weight : params.weights) EXPECT_EQ(element(weight.view(), 0), 0.5);
    for (const Array& bias : params.biases) EXPECT_EQ(element(bias.view(), 0), -0.25);
    const CudnnRnnOptions usual = one.make({.network = {.num_units = 4}})->get_config();
    EXPECT_TRUE(usual.trainable);
    EXPECT_FALSE(usual.kernel_initializer || usual.bias_initializer || usual.activity_regularizer);
    EXPECT_EQ(usual.name, one.name);
  }
}

// The masks of a layer are those of the graph's next operation with its seed.
TEST_F(Classes, ASeedDecidesTheMasks) {
  using Seed = std::optional<std::int64_t>;
  for (const Seed of_graph : {Seed(), Seed(3)}) {
    for (const Seed of_layer : {Seed(), Seed(4), Seed(5)}) {
      const auto expected = [&] {
        Graph graph;
        graph.set_seed(of_graph);
        return ops::DropoutState(graph.op_seeds(of_layer)).seed();
      };
      const auto in_graph = [&](const auto& make) {
        Graph graph;
        const Graph::AsDefault current(graph);
        graph.set_seed(of_graph);
        return make();
      };
      EXPECT_EQ(in_graph([&] {
                  CudnnGRU layer({.num_units = 3, .training = {.seed = of_layer}});
                  layer.set_dropout_calls(8);
                  layer.build({1, 1, 2});
                  EXPECT_EQ(layer.dropout_calls(), 8U) << "as it was set before the build";
                  return layer.dropout_state().seed();
                }),
                expected());
      EXPECT_EQ(in_graph([&] {
                  Dropout layer({.rate = 0.5, .seed = of_layer});
                  layer.set_dropout_calls(8);
                  layer.build({1});
                  EXPECT_EQ(layer.dropout_calls(), 8U);
                  return layer.dropout_state().seed();
                }),
                expected());
    }
  }
}

TEST_F(Classes, ShapesOfTheirResults) {
  const auto shape_of = [](const RnnSpec& network, const Shape& input) {
    return make_cudnn_rnn({.network = network})->compute_output_shape(input);
  };
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    EXPECT_EQ(shape_of({.mode = mode, .num_units = 3}, {7, -1, 4}), (Shape{7, -1, 3}));
    EXPECT_EQ(shape_of({.mode = mode, .num_units = 3, .direction = Direction::kBidirectional},
                       {-1, 5, 4}),
              (Shape{-1, 5, 6}));
  }
  const RnnSpec projecting{
      .num_layers = 2, .num_units = 5, .direction = Direction::kBidirectional, .num_proj = 2};
  EXPECT_EQ(shape_of(projecting, {7, 6, 4}), (Shape{7, 6, 4}));
  const auto layer = make_cudnn_rnn({.network = projecting});
  EXPECT_EQ(layer->state_shape(6), (std::vector<Shape>{{4, 6, 2}, {4, 6, 5}}));
  layer->build({-1, -1, 3});
  const ParamsLayout layout(layer->spec());
  for (std::int64_t l = 0; l < 2; ++l) {
    std::vector<Shape> expected;
    for (const ParamRegion& region : layout.weights()) {
      if (region.layer == l) expected.push_back(region.shape());
    }
    EXPECT_EQ(layer->canonical_weight_shape(l), expected) << l;
    EXPECT_FALSE(expected.empty());
  }
  for (const std::int64_t none : {-1, 2}) {
    EXPECT_EQ(thrown<ArgumentError>([&] { layer->canonical_weight_shape(none); }),
              "[cudnn_lstm] canonical_weight_shape of layer " + std::to_string(none) +
                  ", expected 0 to 1");
  }
}

// Another arithmetic, the same variables; the original stays as it is.
TEST_F(Classes, OtherArithmeticIsOfTheSameVariables) {
  CudnnGRU layer({.num_units = 3});
  layer.build({-1, -1, 4});
  const auto other = layer.with_arithmetic(Math::kFloat32, WeightsDType::kInt8);
  EXPECT_EQ(other->network().compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_EQ(other->spec().compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_EQ(other->network().compute.math, Math::kFloat32);
  EXPECT_EQ(layer.network().compute.weights_dtype, WeightsDType::kNone);
  EXPECT_EQ(layer.spec().compute.weights_dtype, WeightsDType::kNone);
  EXPECT_TRUE(other->kernel().same_as(layer.kernel()));
  EXPECT_EQ(other->saveable(), layer.saveable());
  EXPECT_EQ(layer.math_kind(), math_kind(layer.spec(), layer.device()));
  EXPECT_EQ(other->math_kind(), math_kind(other->spec(), layer.device()));
  const CudnnGRU fresh({.num_units = 3});
  EXPECT_EQ(fresh.math_kind(), layer.math_kind());
}

TEST_F(Classes, OptionsOfDense) {
  Dense layer({.units = 3,
               .activation = Activation::kSigmoid,
               .use_bias = true,
               .kernel_initializer = constant_initializer(0.5),
               .bias_initializer = constant_initializer(-0.25),
               .seed = 4,
               .dtype = DType::kFloat64,
               .name = "mine",
               .device = &test_device(1)});
  const DenseOptions config = layer.get_config();
  EXPECT_EQ(config.units, 3);
  EXPECT_EQ(config.activation, Activation::kSigmoid);
  EXPECT_TRUE(config.use_bias);
  EXPECT_EQ(value_of(config.kernel_initializer), 0.5);
  EXPECT_EQ(value_of(config.bias_initializer), -0.25);
  EXPECT_EQ(config.seed, 4);
  EXPECT_EQ(config.dtype, DType::kFloat64);
  EXPECT_EQ(config.name, "mine");
  EXPECT_EQ(config.device, &test_device(1));
  layer.build({-1, 2});
  EXPECT_EQ(&layer.kernel().device(), &test_device(1));
  EXPECT_EQ(&layer.bias().device(), &test_device(1));
  EXPECT_EQ(element(layer.kernel().to_host().view(), 5), 0.5);
  EXPECT_EQ(element(layer.bias().to_host().view(), 2), -0.25);
  const auto copy = std::dynamic_pointer_cast<Dense>(layer.copy());
  EXPECT_TRUE(copy->kernel().same_as(layer.kernel()));
  EXPECT_TRUE(copy->bias().same_as(layer.bias()));
  EXPECT_EQ(copy->get_config().activation, Activation::kSigmoid);
  Dense plain({.units = 2, .use_bias = false});
  plain.build({-1, 2});
  EXPECT_TRUE(plain.bias().empty());
  EXPECT_EQ(plain.weights().size(), 1U);
  EXPECT_FALSE(plain.get_config().use_bias);
  EXPECT_FALSE(plain.get_config().seed.has_value());
}

TEST_F(Classes, OptionsOfEmbeddingAndDropout) {
  Embedding layer({.vocabulary = 5,
                   .dim = 2,
                   .initializer = constant_initializer(0.75),
                   .seed = 4,
                   .dtype = DType::kFloat64,
                   .name = "mine",
                   .device = &test_device(1)});
  const EmbeddingOptions config = layer.get_config();
  EXPECT_EQ(config.vocabulary, 5);
  EXPECT_EQ(config.dim, 2);
  EXPECT_EQ(value_of(config.initializer), 0.75);
  EXPECT_EQ(config.seed, 4);
  EXPECT_EQ(config.dtype, DType::kFloat64);
  EXPECT_EQ(config.name, "mine");
  EXPECT_EQ(config.device, &test_device(1));
  layer.build({-1});
  EXPECT_EQ(layer.embeddings().shape(), (Shape{5, 2}));
  EXPECT_EQ(&layer.embeddings().device(), &test_device(1));
  EXPECT_EQ(element(layer.embeddings().to_host().view(), 9), 0.75);
  const auto copy = std::dynamic_pointer_cast<Embedding>(layer.copy());
  EXPECT_TRUE(copy->embeddings().same_as(layer.embeddings()));
  EXPECT_EQ(layer.compute_output_shape({-1, 3}), (Shape{-1, 3, 2}));
  const auto table = [](std::int64_t seed) {
    Graph graph;
    const Graph::AsDefault current(graph);
    Embedding one({.vocabulary = 50, .dim = 4, .seed = seed});
    one.build({-1});
    return one.embeddings().to_host();
  };
  EXPECT_TRUE(same_bits(table(1), table(1)));
  EXPECT_FALSE(same_bits(table(1), table(2)));
  const Array usual = table(1);
  double largest = 0.0;
  for (const float value : usual.as<float>()) largest = std::max<double>(largest, std::abs(value));
  EXPECT_LE(largest, 0.05);
  EXPECT_GT(largest, 0.045);
  const Dropout dropout({.rate = 0.75, .seed = 9, .name = "drop"});
  EXPECT_EQ(dropout.get_config().rate, 0.75);
  EXPECT_EQ(dropout.get_config().seed, 9);
  EXPECT_EQ(dropout.get_config().name, "drop");
  EXPECT_EQ(dropout.rate(), 0.75);
  EXPECT_EQ(dropout.compute_output_shape({3, -1}), (Shape{3, -1}));
}

// A rate at either end is no chance, and outside of training no mask is used up.
TEST_F(Classes, DropoutAtItsEnds) {
  const Tensor x = varied({4, 8});
  for (const double rate : {0.0, 0.5, 1.0}) {
    Dropout layer({.rate = rate, .seed = 1});
    EXPECT_TRUE(same(layer(x, false), x)) << rate;
    EXPECT_EQ(layer.dropout_calls(), 0U) << rate;
    const Tensor found = layer(x, true);
    EXPECT_EQ(layer.dropout_calls(), rate == 0.0 ? 0U : 1U) << rate;
    EXPECT_EQ(same(found, x), rate == 0.0);
    if (rate < 1.0) continue;
    const Array zeros = found.to_host();
    for (const float value : zeros.as<float>()) EXPECT_EQ(value, 0.0F);
  }
  for (const double rate : {-0.25, 1.25}) {
    EXPECT_THROW(Dropout({.rate = rate}), ArgumentError);
  }
}

}  // namespace
}  // namespace openrnn
