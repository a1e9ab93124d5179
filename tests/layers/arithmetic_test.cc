// math and weights_dtype on their way through layers and op-level models.
#include "cells/support.h"
#include "openrnn/layers.h"
#include "openrnn/runtime.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using layers::CudnnGRU;
using layers::CudnnLSTM;
using layers::CudnnRnnOptions;
using testing::OwnGraph;
using testing::same_bits;

Tensor inputs() {
  Array x(DType::kFloat32, {5, 3, 4});
  RandomStream random(7);
  for (float& v : x.as<float>()) v = static_cast<float>(random.uniform(-1.0, 1.2));
  return Tensor(x.view());
}

CudnnRnnOptions options_with(Math math, WeightsDType stored = WeightsDType::kNone) {
  CudnnRnnOptions options;
  options.network = {.num_layers = 2,
                     .num_units = 19,
                     .training = {.seed = 3},
                     .compute = {.math = math, .weights_dtype = stored}};
  return options;
}

/// What the engine itself makes of the layer's parameters.
Array by_the_engine(const CudnnLSTM& layer, const Tensor& x) {
  const auto model = std::make_shared<PackedModel>(layer.spec(), layer.kernel().to_host().view());
  InferenceSession session(model);
  const Array given = x.to_host();
  Array y(DType::kFloat32, {5, 3, 19});
  ForwardArgs args;
  args.max_time = 5;
  args.batch = 3;
  args.x = given.data();
  args.y = y.data();
  session.run(args);
  return y;
}

TEST(LayerArithmetic, IsWhatTheEngineRuns) {
  const Tensor x = inputs();
  for (const CudnnRnnOptions& options : {options_with(Math::kBf16), options_with(Math::kBf16x3),
                                         options_with(Math::kFloat32, WeightsDType::kFloat16),
                                         options_with(Math::kFloat32, WeightsDType::kBfloat16),
                                         options_with(Math::kFloat32, WeightsDType::kInt8)}) {
    const OwnGraph own;
    CudnnLSTM layer(options);
    const std::string_view kind = layer.math_kind();
    const Tensor y = layer(x).output;
    EXPECT_EQ(layer.spec().compute.math, options.network.compute.math);
    EXPECT_EQ(layer.spec().compute.weights_dtype, options.network.compute.weights_dtype);
    EXPECT_EQ(layer.math_kind(), kind);
    EXPECT_EQ(kind, choose_engine(layer.spec()).math_kind(layer.spec()));
    EXPECT_TRUE(same_bits(y.to_host(), by_the_engine(layer, x))) << describe(layer.spec());
  }
}

TEST(LayerArithmetic, StaysInConfigurationsAndCopies) {
  const OwnGraph own;
  CudnnLSTM layer(options_with(Math::kBf16));
  EXPECT_EQ(layer.get_config().network.compute.math, Math::kBf16);
  EXPECT_EQ(layer.clone()->network().compute.math, Math::kBf16);
  CudnnGRU stored(options_with(Math::kFloat32, WeightsDType::kInt8));
  EXPECT_EQ(stored.get_config().network.compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_EQ(stored.clone()->network().compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_EQ(CudnnLSTM({.num_units = 3}).get_config().network.compute.math, Math::kFloat32);
}

TEST(LayerArithmetic, OneLayerTrainsAndAnotherRunsOnItsVariables) {
  const OwnGraph own;
  const Tensor x = inputs();
  const CudnnRnnOptions options = options_with(Math::kBf16);
  CudnnLSTM trained(options);
  EXPECT_THROW(trained.with_arithmetic(Math::kFloat32, WeightsDType::kInt8), StateError);
  trained.build({-1, -1, 4});
  const auto stored = trained.with_arithmetic(Math::kFloat32, WeightsDType::kInt8);
  EXPECT_EQ(stored->math_kind(), "int8");
  EXPECT_EQ(trained.network().compute.weights_dtype, WeightsDType::kNone);
  EXPECT_EQ(stored->get_config().network.compute.weights_dtype, WeightsDType::kInt8);
  EXPECT_THROW(trained.with_arithmetic(Math::kBf16, WeightsDType::kInt8), ArgumentError);
  EXPECT_EQ(own.graph.variables().size(), 1u);
  const Array before = (*stored)(x).output.to_host();
  Array other = trained.kernel().to_host();
  for (float& v : other.as<float>()) v *= 0.5F;
  {
    const GradientTape tape;
    trained(x);
    trained.kernel().assign(other.view());
  }
  const Array after = (*stored)(x).output.to_host();
  EXPECT_FALSE(same_bits(before, after));
  CudnnLSTM alone(stored->get_config());
  alone.build({-1, -1, 4});
  alone.kernel().assign(other.view());
  EXPECT_TRUE(same_bits(after, alone(x).output.to_host()));
}

TEST(LayerArithmetic, StoredWeightsHaveNoGradient) {
  const OwnGraph own;
  CudnnLSTM layer(options_with(Math::kFloat32, WeightsDType::kInt8));
  const Tensor x = inputs();
  const Tensor expected = layer(x).output;
  const GradientTape tape;
  expect_error<UnsupportedError>(
      [&] { layer(x); },
      "[cudnn_lstm] weights_dtype is 'int8', which is for inference, in a call whose gradient may "
      "be asked for; expected a call outside of every tape, or a layer without it to train and a "
      "second one of the same variables for inference: with_arithmetic makes it");
  EXPECT_THROW(layer(x, {}, {.training = false, .save = true}), UnsupportedError);
  // Without gradients a tape is no hindrance.
  EXPECT_TRUE(same_bits(expected.to_host(), layer(x, {}, {.training = false}).output.to_host()));
}

TEST(LayerArithmetic, WhatIsNotThereLeavesNothingBehind) {
  const OwnGraph own;
  for (const Math math : {Math::kTf32, Math::kFp16}) {
    CudnnLSTM layer(options_with(math));
    EXPECT_THROW(layer(inputs()), EngineError);
    EXPECT_THROW((void)layer.math_kind(), EngineError);
    EXPECT_FALSE(layer.built());
  }
  EXPECT_TRUE(own.graph.variables().empty());
  CudnnRnnOptions wide = options_with(Math::kBf16);
  wide.network.dtype = DType::kFloat64;
  expect_error<ArgumentError>(
      [&] { const CudnnLSTM layer(wide); },
      "[RnnSpec] math is 'bf16' with dtype float64, expected 'float32' (exact)");
}

TEST(OpArithmetic, OfModelsAndFunctions) {
  const OwnGraph own;
  const Tensor x = inputs();
  ops::CudnnGRU model(
      {.num_units = 19,
       .input_size = 4,
       .compute = {.math = Math::kFloat32, .weights_dtype = WeightsDType::kBfloat16}});
  EXPECT_EQ(model.spec().compute.weights_dtype, WeightsDType::kBfloat16);
  EXPECT_EQ(model.math_kind(), "float32");
  Array values(DType::kFloat32, {model.params_size()});
  RandomStream random(5);
  for (float& v : values.as<float>()) v = static_cast<float>(random.uniform(-0.4, 0.5));
  const Tensor params(values.view()), h(Array(DType::kFloat32, {1, 3, 19}).view());
  const Array stored = model(x, h, params, false).output.to_host();
  ops::CudnnFunctionOptions options;
  options.network.compute.weights_dtype = WeightsDType::kBfloat16;
  EXPECT_TRUE(same_bits(stored, ops::cudnn_gru(x, h, params, options).output.to_host()));
  options.network.compute.math = Math::kFp16;
  options.network.compute.weights_dtype = WeightsDType::kNone;
  EXPECT_THROW(ops::cudnn_gru(x, h, params, options), EngineError);
  EXPECT_THROW(
      ops::CudnnLSTM({.num_units = 3,
                      .input_size = 2,
                      .compute = {.math = Math::kBf16, .weights_dtype = WeightsDType::kInt8}}),
      ArgumentError);
}

}  // namespace
}  // namespace openrnn
