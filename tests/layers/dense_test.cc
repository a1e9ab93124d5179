// Dense, Embedding and Dropout.
#include "cells/support.h"
#include "openrnn/layers.h"

namespace openrnn {
namespace {

using layers::Activation;
using layers::Dense;
using layers::Dropout;
using layers::Embedding;
using testing::OwnGraph;
using testing::same_bits;
using testing::thrown;

Array array(Shape shape, std::vector<float> values) {
  return Array::of<float>(std::move(shape), values);
}

TEST(Dense, ProductBiasAndActivation) {
  const OwnGraph own;
  const Tensor x(array({1, 2, 2}, {1, 2, -3, 4}).view());
  for (const Activation activation : {Activation::kLinear, Activation::kRelu}) {
    Dense dense({.units = 3, .activation = activation});
    dense.build({-1, -1, 2});
    dense.kernel().assign(array({2, 3}, {1, 2, 3, 4, 5, 6}).view());
    dense.bias().assign(array({3}, {0.5f, -20, 1}).view());
    const bool relu = activation == Activation::kRelu;
    const Array expected =
        array({1, 2, 3}, {9.5f, relu ? 0.0f : -8.0f, 16, 13.5f, relu ? 0.0f : -6.0f, 16});
    EXPECT_TRUE(same_bits(dense(x).to_host(), expected));
  }
  Dense plain({.units = 1, .use_bias = false, .kernel_initializer = constant_initializer(2.0)});
  EXPECT_TRUE(same_bits(plain(x).to_host(), array({1, 2, 1}, {6, 2})));
  EXPECT_TRUE(plain.bias().empty());
}

TEST(Dense, NamesAndInitialValues) {
  const OwnGraph own;
  Dense first({.units = 3}), second({.units = 3}), named({.units = 2, .name = "logits"});
  for (Dense* dense : {&first, &second, &named}) dense->build({1, 4});
  EXPECT_EQ(first.kernel().name(), "dense/kernel");
  EXPECT_EQ(second.bias().name(), "dense_1/bias");
  EXPECT_EQ(named.kernel().name(), "logits/kernel");
  EXPECT_EQ(named.kernel().shape(), (Shape{4, 2}));
  EXPECT_FALSE(same_bits(first.kernel().to_host(), second.kernel().to_host()));
  EXPECT_TRUE(same_bits(first.bias().to_host(), Array(DType::kFloat32, {3})));
}

TEST(Dense, TheInputSpecIsItsDepthOnceBuilt) {
  const OwnGraph own;
  Dense dense({.units = 3});
  EXPECT_FALSE(dense.input_spec());
  dense.build({-1, -1, 4});
  ASSERT_TRUE(dense.input_spec());
  EXPECT_FALSE(dense.input_spec()->ndim);
  EXPECT_EQ(dense.input_spec()->axes.size(), 1U);
  EXPECT_EQ(dense.input_spec()->axes.at(-1), 4);
}

TEST(Dense, ItsSeedDecidesItsKernel) {
  const auto kernel = [](std::int64_t seed) {
    const OwnGraph own;
    Dense dense({.units = 3, .seed = seed});
    dense.build({1, 4});
    return dense.kernel().to_host();
  };
  EXPECT_TRUE(same_bits(kernel(5), kernel(5)));
  EXPECT_FALSE(same_bits(kernel(5), kernel(6)));
  EXPECT_FALSE(same_bits(kernel(0), kernel(1)));
}

// And a bias that is drawn, whatever the seed of the graph.
TEST(Dense, ItsSeedDecidesItsBias) {
  const auto bias = [](std::optional<std::int64_t> seed, std::int64_t of_graph) {
    Graph graph;
    const Graph::AsDefault current(graph);
    graph.set_seed(of_graph);
    Dense dense(
        {.units = 3, .bias_initializer = random_uniform_initializer(-1.0, 1.0), .seed = seed});
    dense.build({1, 4});
    return dense.bias().to_host();
  };
  EXPECT_TRUE(same_bits(bias(5, 1), bias(5, 2)));
  EXPECT_FALSE(same_bits(bias(5, 1), bias(6, 1)));
  EXPECT_TRUE(same_bits(bias({}, 1), bias({}, 1)));
  EXPECT_FALSE(same_bits(bias({}, 1), bias({}, 2)));
}

TEST(Dropout, ACopyDrawsTheMasksThatItsLayerWouldDraw) {
  const OwnGraph own;
  Array values(DType::kFloat32, {4, 64});
  std::fill(values.as<float>().begin(), values.as<float>().end(), 1.0F);
  const Tensor x(values.view());
  Dropout dropout({.rate = 0.5, .seed = 4});
  const Array first = dropout(x, true).to_host();
  const auto copied = dropout.copy();
  auto& copy = dynamic_cast<Dropout&>(*copied);
  EXPECT_EQ(copy.dropout_calls(), 1U);
  const Array second = dropout(x, true).to_host();
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_TRUE(same_bits(copy(x, true).to_host(), second));
  EXPECT_EQ(dropout.dropout_calls(), 2U);
}

TEST(Dense, Errors) {
  const OwnGraph own;
  EXPECT_EQ(thrown<ArgumentError>([] { Dense({.units = 0}); }),
            "[Dense] units 0, expected 1 or more");
  Dense dense({.units = 3});
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dense.build({2, -1});
            }),
            "[dense] an input shape of [2, -1], expected its last dimension to be defined");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dense.build({2, 0});
            }),
            "[dense] an input shape of [2, 0], expected its last dimension to be defined");
  dense.build({2, 4});
  // A model may be given the right depth later.
  EXPECT_EQ(dense(Input({2, -1})).shape(), (Shape{2, 3}));
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dense(Tensor(Array(DType::kFloat32, {2, 5}).view()));
            }),
            "[dense] incompatible layer input: axis -1 of shape [2, 5], expected axis -1 to have "
            "value 4");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              dense(Tensor(Array(DType::kFloat64, {2, 4}).view()));
            }),
            "[dense] inputs are float64, expected float32");
}

TEST(Dense, ShapesOfItsOutputs) {
  const OwnGraph own;
  Dense dense({.units = 3});
  EXPECT_EQ(dense.compute_output_shape({-1, 7, 4}), (Shape{-1, 7, 3}));
  EXPECT_EQ(thrown<ArgumentError>([&] { dense.compute_output_shape({}); }),
            "[dense] compute_output_shape of a scalar, expected at least 1 dimension");
  EXPECT_EQ(Embedding({.vocabulary = 5, .dim = 2}).compute_output_shape({-1, 7}),
            (Shape{-1, 7, 2}));
  layers::CudnnLSTM lstm({.num_units = 3});
  EXPECT_EQ(thrown<ArgumentError>([&] {
              lstm.compute_output_shape({2, 4});
            }),
            "[cudnn_lstm] compute_output_shape of [2, 4], expected 3 dimensions: [time, batch, "
            "depth]");
}

TEST(Embedding, RowsOfTheTable) {
  const OwnGraph own;
  Embedding embedding({.vocabulary = 3, .dim = 2});
  const std::vector<std::int32_t> indices{2, 0, 2, 1};
  const Array given = Array::of<std::int32_t>({2, 2}, indices);
  embedding(given.view());
  EXPECT_EQ(embedding.embeddings().name(), "embedding/embeddings");
  embedding.embeddings().assign(array({3, 2}, {1, 2, 3, 4, 5, 6}).view());
  EXPECT_TRUE(
      same_bits(embedding(given.view()).to_host(), array({2, 2, 2}, {5, 6, 1, 2, 5, 6, 3, 4})));
  const std::vector<std::int32_t> outside{0, 3};
  EXPECT_NE(thrown<ArgumentError>([&] { embedding(Array::of<std::int32_t>({2}, outside).view()); }),
            "");
  EXPECT_EQ(thrown<ArgumentError>([] { Embedding({.vocabulary = 0, .dim = 2}); }),
            "[Embedding] vocabulary 0, expected 1 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { Embedding({.vocabulary = 2, .dim = -1}); }),
            "[Embedding] dim -1, expected 1 or more");
}

TEST(Dropout, KeepsScalesAndCanBeRepeated) {
  const OwnGraph own;
  Dropout dropout({.rate = 0.25, .seed = 4});
  const Tensor ones(Array(DType::kFloat32, {20, 50}).view());
  const Tensor x = ops::add_scalar(ones, 1.0);
  EXPECT_TRUE(same_bits(dropout(x, false).to_host(), x.to_host()));
  EXPECT_EQ(dropout.dropout_calls(), 0u);
  const Array first = dropout(x, true).to_host();
  int kept = 0;
  for (const float value : first.as<float>()) {
    EXPECT_TRUE(value == 0.0f || value == static_cast<float>(1.0 / 0.75)) << value;
    kept += value != 0.0f;
  }
  EXPECT_NEAR(kept, 750, 69);  // five standard deviations of 1000 draws
  EXPECT_FALSE(same_bits(first, dropout(x, true).to_host()));
  dropout.set_dropout_calls(0);
  EXPECT_TRUE(same_bits(first, dropout(x, true).to_host()));
  EXPECT_EQ(thrown<ArgumentError>([] { Dropout({.rate = 1.5}); }),
            "[Dropout] rate 1.5, expected 0 to 1");
  EXPECT_EQ(thrown<ArgumentError>([] { Dropout({.rate = -0.5}); }),
            "[Dropout] rate -0.5, expected 0 to 1");
  // Both ends are in it: all values stay, and none does.
  EXPECT_TRUE(same_bits(Dropout({.rate = 0.0})(x, true).to_host(), x.to_host()));
  const Array none = Dropout({.rate = 1.0})(x, true).to_host();
  for (const float value : none.as<float>()) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace openrnn
