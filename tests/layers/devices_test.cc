// Layers on a device of their own.
#include "cells/support.h"
#include "openrnn/layers.h"
#include "support/expect_error.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

using layers::CudnnLSTM;

CudnnLSTM lstm_on(const Device& device) {
  return CudnnLSTM({.num_layers = 2,
                    .num_units = 3,
                    .direction = Direction::kBidirectional,
                    .training = {.dropout = 0.4, .seed = 7},
                    .compute = {.device = &device}});
}

std::vector<Array> run(const Device& device, bool time_major) {
  const OwnGraph own;
  CudnnLSTM layer = lstm_on(device);
  layers::RnnCallOptions call;
  call.time_major = time_major;
  call.sequence_lengths = {{5, 0, 2}};
  call.every = true;
  GradientTape tape;
  const Tensor x = tape.watch(varied(time_major ? Shape{5, 3, 4} : Shape{3, 5, 4}));
  const Shape state = time_major ? Shape{4, 3, 3} : Shape{3, 4, 3};
  const layers::RnnResult result = layer(x, {varied(state, 2), varied(state, 3)}, call);
  EXPECT_EQ(&result.output.device(), &device);
  EXPECT_EQ(&layer.kernel().device(), &device);
  std::vector<Array> arrays{result.output.to_host(), result.state[0].to_host(),
                            result.state[1].to_host()};
  for (const Tensor& each : result.layer_outputs) arrays.push_back(each.to_host());
  for (const Tensor& each : result.layer_cells) arrays.push_back(each.to_host());
  const Tensor loss = ops::reduce_sum(ops::square(result.output));
  arrays.push_back(tape.gradient(loss, std::vector{x})[0].to_host());
  arrays.push_back(tape.gradient(loss, std::vector{layer.kernel()})[0].to_host());
  return arrays;
}

TEST(Devices, ARecurrentLayerGivesTheSameBits) {
  for (const bool time_major : {true, false}) {
    const std::vector<Array> here = run(cpu_device(), time_major);
    const std::vector<Array> there = run(test_device(), time_major);
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(same_bits(here[i], there[i])) << i;
  }
}

TEST(Devices, CopiesStayThere) {
  const OwnGraph own;
  CudnnLSTM layer = lstm_on(test_device());
  layer.build({-1, -1, 4});
  EXPECT_EQ(&layer.clone()->device(), &test_device());
  const auto other = layer.with_arithmetic(Math::kBf16, WeightsDType::kNone);
  EXPECT_EQ(&other->device(), &test_device());
  EXPECT_EQ(&(*other)(varied({2, 1, 4})).output.device(), &test_device());
  EXPECT_EQ(layer.get_config().network.compute.device, &test_device());
  EXPECT_EQ(CudnnLSTM({.num_units = 3}).get_config().network.compute.device, nullptr);
}

TEST(Devices, WhatTheDeviceCannotIsSaidBeforeAnythingIsMade) {
  const OwnGraph own;
  CudnnLSTM layer({.num_units = 3, .compute = {.math = Math::kTf32, .device = &test_device()}});
  EXPECT_THROW(layer(varied({2, 1, 4})), EngineError);
  EXPECT_FALSE(layer.built());
  EXPECT_TRUE(own.graph.variables().empty());
  CudnnLSTM stored({.num_units = 3,
                    .compute = {.weights_dtype = WeightsDType::kInt8, .device = &test_device(1)}});
  EXPECT_THROW(stored(varied({2, 1, 4})), UnsupportedError);
}

TEST(Devices, ADataThatWasPlacedElsewhereIsRefused) {
  const OwnGraph own;
  CudnnLSTM layer = lstm_on(test_device());
  const Tensor x(varied({2, 1, 4}).to_host().view(), cpu_device());
  expect_error<ArgumentError>([&] { layer(x); },
                              "[cudnn_lstm] one input lies on cpu and one on test:0, expected one "
                              "device: to() copies a tensor to another");
  layers::Dense dense({.units = 2, .device = &test_device()});
  EXPECT_THROW(dense(x), ArgumentError);
  EXPECT_EQ(&dense(x.to(test_device())).device(), &test_device());
}

TEST(Devices, AWholeNetworkTakesHostData) {
  const OwnGraph own;
  layers::Embedding embedding({.vocabulary = 6, .dim = 4, .seed = 1, .device = &test_device()});
  CudnnLSTM lstm = lstm_on(test_device());
  layers::Dropout dropout({.rate = 0.5, .seed = 3});
  layers::Dense dense({.units = 6, .seed = 2, .device = &test_device()});
  const std::vector<std::int32_t> ids{1, 5, 0, 2};
  const ConstArrayView x{ids.data(), DType::kInt32, {4, 1}};
  const Tensor symbolic = Input({-1, -1}, DType::kInt32);
  Model model({symbolic}, {dense(dropout(lstm(embedding(symbolic)).output, false))});
  const Tensor logits = model({Tensor(x)})[0];
  EXPECT_EQ(&logits.device(), &test_device());
  const Tensor loss = ops::softmax_cross_entropy(logits, Tensor(x));
  EXPECT_EQ(&loss.device(), &test_device());
  for (const Array& weight : model.get_weights()) EXPECT_GT(weight.size(), 0);
  model.set_weights(model.get_weights());
  EXPECT_EQ(model({Tensor(x).to(test_device(1))})[0].to_host().size(), 24);
}

TEST(Devices, DropoutBeforeAnythingElseLeavesHostDataFree) {
  const OwnGraph own;
  layers::Dropout dropout({.rate = 0.5, .seed = 3});
  layers::Dense dense({.units = 2, .device = &test_device()});
  EXPECT_EQ(&dense(dropout(varied({3, 4}), true)).device(), &test_device());
}

}  // namespace
}  // namespace openrnn::testing
