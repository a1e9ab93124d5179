// Calls of the recurrent layers: states, layouts, dropout, gradients, errors.
#include "cells/support.h"
#include "openrnn/layers.h"
#include "support/setting.h"

namespace openrnn {
namespace {

using layers::CudnnGRU;
using layers::CudnnLSTM;
using layers::RnnCallOptions;
using layers::RnnResult;
using testing::OwnGraph;
using testing::same;
using testing::same_bits;
using testing::Setting;
using testing::thrown;
using testing::varied;

TEST(CudnnLayerCall, NoStateIsZeroState) {
  const OwnGraph own;
  CudnnLSTM layer({.num_layers = 2, .num_units = 3, .direction = Direction::kBidirectional});
  const Tensor x = varied({4, 2, 5});
  const RnnResult without = layer(x);
  EXPECT_EQ(without.output.shape(), (Shape{4, 2, 6}));
  ASSERT_EQ(without.state.size(), 2u);
  EXPECT_EQ(without.state[0].shape(), (Shape{4, 2, 3}));
  const Tensor zero(Array(DType::kFloat32, {4, 2, 3}).view());
  const RnnResult with = layer(x, {zero, zero});
  EXPECT_TRUE(same(without.output, with.output));
  EXPECT_TRUE(same(without.state[1], with.state[1]));
  // h is the state that the output ends with; (h, c), not (c, h).
  const Tensor h = ops::slice(without.state[0], {.axis = 0, .begin = 2, .size = 1});
  const Tensor last = ops::slice(ops::slice(without.output, {.axis = 0, .begin = 3, .size = 1}),
                                 {.axis = 2, .begin = 0, .size = 3});
  EXPECT_TRUE(same(h, last));
}

// As many rows as layers and directions: no shape tells the layouts apart.
TEST(CudnnLayerCall, AStateKnowsItsLayout) {
  const OwnGraph own;
  CudnnLSTM layer({.num_layers = 2, .num_units = 3});
  const Tensor x = varied({4, 2, 5}), y = ops::transpose_leading(x);
  const RnnCallOptions time{.time_major = true}, batch{.time_major = false};
  const RnnResult first = layer(x, {}, time), transposed = layer(y, {}, batch);
  EXPECT_EQ(first.state[0].state_layout(), StateLayout::kTimeMajor);
  EXPECT_EQ(transposed.state[1].state_layout(), StateLayout::kBatchMajor);
  EXPECT_EQ(first.output.state_layout(), StateLayout::kUnknown);
  const Tensor unknown = Input({-1, -1, 5});
  EXPECT_EQ(layer(unknown, {}, time).state[0].state_layout(), StateLayout::kTimeMajor);
  EXPECT_EQ(layer(unknown, {}, batch).state[1].state_layout(), StateLayout::kBatchMajor);
  const RnnResult wanted = layer(x, first.state, time), found = layer(x, transposed.state, time);
  EXPECT_TRUE(same(wanted.output, found.output));
  EXPECT_TRUE(same(wanted.state[1], found.state[1]));
  EXPECT_TRUE(same(ops::transpose_leading(wanted.output), layer(y, first.state, batch).output));
  // What is computed of a state, and what nobody marked, is read as the call says.
  const Tensor bare(transposed.state[0].value()), same_value = ops::scale(transposed.state[0], 1.0);
  EXPECT_EQ(same_value.state_layout(), StateLayout::kUnknown);
  const Tensor c = ops::scale(transposed.state[1], 1.0);
  EXPECT_TRUE(same(layer(x, {bare, c}, time).output, layer(x, {same_value, c}, time).output));
  EXPECT_FALSE(same(layer(x, {bare, c}, time).output, wanted.output));
}

TEST(CudnnLayerCall, BatchMajorIsTheSameTransposed) {
  const OwnGraph own;
  CudnnGRU layer({.num_layers = 2, .num_units = 3});
  const Tensor x = varied({4, 2, 5}), h0 = varied({2, 2, 3}, 2);
  RnnCallOptions call{.sequence_lengths = {{4, 1}}, .time_major = true};
  const RnnResult a = layer(x, {h0}, call);
  call.time_major = false;
  const RnnResult b = layer(ops::transpose_leading(x), {ops::transpose_leading(h0)}, call);
  EXPECT_TRUE(same(a.output, ops::transpose_leading(b.output)));
  EXPECT_TRUE(same(a.state[0], ops::transpose_leading(b.state[0])));
  EXPECT_EQ(a.state.size(), 1u);
}

TEST(CudnnLayerCall, EdgesOfTimeAndBatch) {
  const OwnGraph own;
  CudnnGRU layer({.num_units = 3});
  const Tensor h0 = varied({1, 2, 3}, 2);
  EXPECT_TRUE(same(layer(varied({1, 2, 4}), {h0}, {.sequence_lengths = {{0, 0}}}).state[0], h0));
  EXPECT_TRUE(same(layer(Tensor(Array(DType::kFloat32, {0, 2, 4}).view()), {h0}).state[0], h0));
  EXPECT_EQ(layer(Tensor(Array(DType::kFloat32, {3, 0, 4}).view())).output.shape(),
            (Shape{3, 0, 3}));
}

// Training calls draw masks that differ from call to call and come back with the counter.
TEST(CudnnLayerCall, DropoutAdvancesAndCanBeSetBack) {
  const OwnGraph own;
  const auto make = [] {
    return CudnnLSTM(
        {.network = {.num_layers = 2, .num_units = 8, .training = {.dropout = 0.5, .seed = 3}},
         .name = "l"});
  };
  CudnnLSTM layer = make();
  const Tensor x = varied({3, 2, 4});
  const Tensor first = layer(x).output, second = layer(x).output;
  EXPECT_FALSE(same(first, second));
  EXPECT_EQ(layer.dropout_calls(), 2u);
  const RnnCallOptions inference{.training = false};
  EXPECT_TRUE(same(layer(x, {}, inference).output, layer(x, {}, inference).output));
  EXPECT_EQ(layer.dropout_calls(), 2u);
  // One that fails does not advance it.
  EXPECT_THROW(layer(x, {}, {.sequence_lengths = {{4, 1}}}), ArgumentError);
  EXPECT_THROW(layer(varied({3, 2, 5})), ArgumentError);
  const Tensor depth = Input({-1, -1, 4}), lengths = Input({-1}, DType::kInt32);
  Model recorded({depth, lengths}, {layer(depth, {}, {.lengths = lengths}).output});
  const Tensor beyond(Array::of<std::int32_t>({2}, std::vector<std::int32_t>{4, 1}).view());
  EXPECT_THROW(recorded({x, beyond}), ArgumentError);
  EXPECT_EQ(layer.dropout_calls(), 2u);
  layer.set_dropout_calls(0);
  EXPECT_TRUE(same(layer(x).output, first));
  // A fresh process with the same seeds and a restored counter, set before the layer is built.
  Graph other;
  const Graph::AsDefault current(other);
  CudnnLSTM again = make();
  again.set_dropout_calls(1);
  EXPECT_TRUE(same(again(x).output, second));
  EXPECT_EQ(again.dropout_calls(), 2u);
}

TEST(CudnnLayerCall, AssigningTheKernelTakesEffect) {
  const OwnGraph own;
  CudnnGRU layer({.num_units = 3});
  const Tensor x = varied({3, 2, 4});
  const Tensor before = layer(x).output;
  const Array kernel = layer.kernel().to_host();
  layer.kernel().assign(Array(DType::kFloat32, kernel.shape()).view());
  EXPECT_FALSE(same(before, layer(x).output));
  layer.kernel().assign(kernel.view());
  EXPECT_TRUE(same(before, layer(x).output));
}

TEST(CudnnLayerCall, GradientsReachKernelInputsAndStates) {
  const OwnGraph own;
  CudnnLSTM layer({.num_layers = 2, .num_units = 3, .dtype = DType::kFloat64});
  const Tensor x = varied({3, 2, 4}, 1, DType::kFloat64), h = varied({2, 2, 3}, 2, DType::kFloat64);
  layer.build(x.shape());
  const auto loss = [&](const Tensor& input) {
    const RnnResult result = layer(input, {h, h});
    return ops::add(ops::reduce_sum(ops::square(result.output)), ops::reduce_sum(result.state[1]));
  };
  const GradientTape tape;
  const Tensor watched = tape.watch(x);
  const Tensor y = loss(watched);
  const auto dx = tape.gradient(y, {watched})[0].to_host();
  const auto dw = tape.gradient(y, std::vector<Variable>{layer.kernel()})[0].to_host();
  ASSERT_EQ(dw.shape(), layer.kernel().shape());
  constexpr double kStep = 1e-5;
  for (const std::int64_t i : {0, 7, 23}) {
    const auto moved = [&](double by) {
      Array values = x.to_host();
      values.as<double>()[static_cast<std::size_t>(i)] += by;
      return loss(Tensor(values.view())).item();
    };
    EXPECT_NEAR((moved(kStep) - moved(-kStep)) / (2 * kStep), element(dx.view(), i), 1e-8);
  }
  const Array kernel = layer.kernel().to_host();
  for (const std::int64_t i : {0, 50, 200}) {
    const auto moved = [&](double by) {
      Array values = kernel;
      values.as<double>()[static_cast<std::size_t>(i)] += by;
      layer.kernel().assign(values.view());
      return loss(x).item();
    };
    EXPECT_NEAR((moved(kStep) - moved(-kStep)) / (2 * kStep), element(dw.view(), i), 1e-8);
  }
}

// What keeps gradients possible outside of training, and what keeps less for them.
TEST(CudnnLayerCall, ARecordedCallSavesAndRecomputesAsItWasAsked) {
  const OwnGraph own;
  CudnnGRU layer({.num_units = 3});
  const Tensor x = Input({4, 2, 5});
  const auto gradient = [&](const RnnCallOptions& call) {
    Model model({x}, {layer(x, {}, call).output});
    const GradientTape tape;
    const Tensor watched = tape.watch(varied({4, 2, 5}));
    const Tensor y = model({watched})[0];
    return tape.gradient(ops::reduce_sum(y), {watched})[0].to_host();
  };
  const Array kept = gradient({.training = false, .save = true});
  EXPECT_TRUE(same_bits(kept, gradient({})));
  EXPECT_THROW(gradient({.training = false}), ArgumentError);
  // Engines that keep all say so where a call asks for less.
  std::optional<Setting> reference;
  if (!default_device().engine()) {
    EXPECT_TRUE(same_bits(kept, gradient({.training = false, .save = true, .recompute = 32})));
    reference.emplace("OPENRNN_ENGINE", "reference");
  }
  EXPECT_NO_THROW(gradient({}));
  EXPECT_THROW(gradient({.recompute = 32}), UnsupportedError);
}

TEST(CudnnLayerError, InputsAndStates) {
  const OwnGraph own;
  CudnnLSTM layer({.num_units = 3});
  const Tensor x = varied({2, 2, 4}), h = varied({1, 2, 3}), wrong = varied({1, 3, 2});
  const auto refused = [&](const Tensor& input, const std::vector<Tensor>& state,
                           const RnnCallOptions& call = {}) {
    return thrown<ArgumentError>([&] { layer(input, state, call); });
  };
  layer(x);
  EXPECT_EQ(refused(varied({2, 4}), {}),
            "[cudnn_lstm] incompatible layer input: found ndim=2 with shape [2, 4], expected "
            "ndim=3");
  EXPECT_EQ(refused(varied({2, 2, 5}), {}),
            "[cudnn_lstm] incompatible layer input: axis -1 of shape [2, 2, 5], expected axis -1 "
            "to have value 4");
  EXPECT_EQ(refused(varied({2, 2, 4}, 1, DType::kFloat64), {}),
            "[cudnn_lstm] inputs are float64, expected float32");
  EXPECT_EQ(refused(x, {h}), "[cudnn_lstm] an initial_state of 1 tensors, expected 2: (h, c)");
  EXPECT_EQ(
      refused(x, {h, wrong}),
      "[cudnn_lstm] initial_state[1] (c) has shape [1, 3, 2], expected [1, 2, 3], time-major");
  EXPECT_EQ(
      refused(x, {h, h}, {.time_major = false}),
      "[cudnn_lstm] initial_state[0] (h) has shape [1, 2, 3], expected [2, 1, 3], batch-major");
  EXPECT_EQ(refused(x, {varied({1, 2, 3}, 1, DType::kFloat64), h}),
            "[cudnn_lstm] initial_state[0] (h) is float64, expected float32");
  EXPECT_EQ(refused(x, {}, {.sequence_lengths = {{2, 3}}}),
            "[cudnn_lstm] sequence_lengths[1] is 3, expected 0 to 2");
  EXPECT_EQ(refused(x, {}, {.sequence_lengths = {{2}}}),
            "[cudnn_lstm] sequence_lengths has 1 elements, expected 2, one a row of the batch");
  const Tensor rows_first = varied({2, 3, 4});
  EXPECT_EQ(refused(rows_first, {}, {.sequence_lengths = {{2, 3, 1}}, .time_major = false}),
            "[cudnn_lstm] sequence_lengths has 3 elements, expected 2, one a row of the batch");
  EXPECT_EQ(refused(rows_first, {}, {.sequence_lengths = {{2, 4}}, .time_major = false}),
            "[cudnn_lstm] sequence_lengths[1] is 4, expected 0 to 3");
  const Tensor in = Input({-1, -1, 4});
  const std::string symbolic = " of a symbolic call, expected values";
  EXPECT_EQ(thrown<UnsupportedError>([&] { layer(in, {}, {.flags = {.mask = {true}}}); }),
            "[cudnn_lstm] mask and reset" + symbolic + ", or sequence_lengths");
  EXPECT_EQ(thrown<UnsupportedError>([&] { layer(in, {}, {.flags = {.reset = {true}}}); }),
            "[cudnn_lstm] mask and reset" + symbolic + ", or sequence_lengths");
  EXPECT_EQ(thrown<UnsupportedError>([&] { layer(in, {}, {.every = true}); }),
            "[cudnn_lstm] every layer's outputs" + symbolic + ": ask when there are some");
  CudnnGRU gru({.num_units = 3});
  EXPECT_EQ(thrown<ArgumentError>([&] {
              gru(x, {h, h});
            }),
            "[cudnn_gru] an initial_state of 2 tensors, expected 1: (h,)");
}

TEST(CudnnLayerError, LengthsOfACallWhoseSizesAreNotKnown) {
  const OwnGraph own;
  CudnnGRU layer({.num_units = 3});
  const Tensor x = varied({3, 2, 4}), in = Input({-1, -1, 4});
  const RnnCallOptions call{.sequence_lengths = {{2, 3}}};
  Model model({in}, {layer(in, {}, call).output});
  EXPECT_TRUE(same(model({x})[0], layer(x, {}, call).output));
  EXPECT_EQ(thrown<ArgumentError>([&] {
              layer(in, {}, {.sequence_lengths = {{2, -1}}});
            }),
            "[cudnn_gru] sequence_lengths[1] is -1, expected 0 to max_time");
}

TEST(CudnnLayerError, AModelsStateOfAnotherBatch) {
  const OwnGraph own;
  CudnnGRU layer({.num_units = 3});
  const Tensor in = Input({-1, -1, 4}), h0 = Input({1, -1, 3});
  Model model({in, h0}, {layer(in, {h0}).output});
  EXPECT_EQ(thrown<ArgumentError>([&] {
              model({varied({3, 2, 4}), varied({1, 5, 3})});
            }),
            "[cudnn_gru] initial_state[0] (h) has shape [1, 5, 3], expected [1, 2, 3], time-major");
}

TEST(CudnnLayerError, BeforeBuildAndInBuild) {
  const OwnGraph own;
  CudnnLSTM layer({.num_units = 3});
  EXPECT_EQ(thrown<ArgumentError>([&] { layer.input_size(); }),
            "[cudnn_lstm] the input size is unknown since the layer has not been built, expected a "
            "build or a call before");
  EXPECT_EQ(thrown<StateError>([&] { layer.canonical_weight_shapes(); }),
            "[CudnnLSTM] canonical_weight_shapes of 'cudnn_lstm' before the input shape is known, "
            "expected a build or a call before");
  EXPECT_NE(thrown<ArgumentError>([&] { layer.kernel(); }), "");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              layer.build({2, 4});
            }),
            "[cudnn_lstm] an input shape of 2 dimensions [2, 4], expected 3: [time, batch, depth]");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              layer.build({-1, -1, -1});
            }),
            "[cudnn_lstm] the last dimension of the input shape [-1, -1, -1] is unknown, expected "
            "it to be defined");
  EXPECT_FALSE(layer.built());
  EXPECT_NE(thrown<ArgumentError>([] { CudnnLSTM({.num_units = 0}); }), "");
  EXPECT_NE(thrown<ArgumentError>([] { CudnnLSTM({.num_layers = 0, .num_units = 1}); }), "");
  EXPECT_NE(
      thrown<ArgumentError>([] { CudnnLSTM({.num_units = 1, .training = {.dropout = 1.5}}); }), "");
  EXPECT_NE(thrown<ArgumentError>([] { CudnnGRU({.num_units = 4, .num_proj = 5}); }), "");
  EXPECT_NE(thrown<ArgumentError>([] { CudnnGRU({.num_units = 4, .dtype = DType::kInt32}); }), "");
  CudnnGRU skipping({.num_units = 4, .input_mode = InputMode::kSkipInput});
  EXPECT_NE(thrown<ArgumentError>([&] { skipping.build({1, 1, 3}); }), "");
  EXPECT_FALSE(skipping.built());
  EXPECT_TRUE(own.graph.variables().empty());
}

// A layer of two models has losses of both calls; each model computes those that its inputs reach.
TEST(CudnnLayerCall, AModelHasTheLossesOfItsOwnInputsAlone) {
  const OwnGraph own;
  const Regularizer regularizer = [](const Tensor& y) { return ops::l2_regularization(y, 0.1); };
  const auto layer = std::make_shared<CudnnGRU>(
      layers::CudnnRnnOptions{.network = {.num_units = 3}, .activity_regularizer = regularizer});
  const Tensor one = Input({-1, -1, 4}), other = Input({-1, -1, 4});
  Model first({one}, {(*layer)(one).output}), second({other}, {(*layer)(ops::tanh(other)).output});
  const Tensor x = varied({3, 2, 4});
  for (Model* const model : {&first, &second}) {
    const Tensor y = (*model)({x})[0];
    const std::vector<Tensor> losses = model->losses();
    ASSERT_EQ(losses.size(), 2U) << "one an output";
    EXPECT_EQ(losses[0].item(), regularizer(y).item());
    EXPECT_EQ(model->copy()->losses().size(), 2U);
  }
  EXPECT_FALSE(same(first({x})[0], second({x})[0]));
}

// A value with symbolic lengths is a call of the model as well.
TEST(CudnnLayerCall, LengthsAloneMayBeSymbolic) {
  const OwnGraph own;
  const auto layer =
      std::make_shared<CudnnGRU>(layers::CudnnRnnOptions{.network = {.num_units = 3}});
  const Tensor x = varied({4, 2, 5}), lengths = Input({2}, DType::kInt32);
  const RnnResult made = (*layer)(x, {}, {.lengths = lengths});
  EXPECT_TRUE(made.output.is_symbolic());
  Model model({lengths}, {made.output, made.state[0]});
  for (const std::vector<std::int32_t>& given : {std::vector{4, 1}, std::vector{2, 3}}) {
    const Tensor values(ConstArrayView{given.data(), DType::kInt32, {2}});
    const RnnResult direct = (*layer)(x, {}, {.sequence_lengths = given});
    const std::vector<Tensor> found = model({values});
    EXPECT_TRUE(same(found[0], direct.output));
    EXPECT_TRUE(same(found[1], direct.state[0]));
  }
}

// Before the layer is built and after, called on values and on an Input.
TEST(CudnnLayerError, EveryOtherRankIsRefusedByTheLayer) {
  const OwnGraph own;
  CudnnGRU built({.num_units = 3}), fresh({.num_units = 3});
  built(varied({2, 2, 4}));
  fresh.override_build([](const Shape&) { ADD_FAILURE() << "built"; });
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 4}, Shape{2, 2, 4, 1}, Shape{2, 2, 4, 4},
                             Shape{1, 2, 2, 4, 4}}) {
    const std::string expected =
        "incompatible layer input: found ndim=" + std::to_string(shape.size()) + " with shape " +
        to_string(shape) + ", expected ndim=3";
    for (CudnnGRU* const layer : {&built, &fresh}) {
      for (const Tensor& given : {varied(shape), Input(shape)}) {
        EXPECT_EQ(thrown<ArgumentError>([&] { (*layer)(given); }),
                  "[" + layer->name() + "] " + expected);
      }
    }
    EXPECT_EQ(thrown<ArgumentError>([&] { built.compute_output_shape(shape); }),
              "[cudnn_gru] compute_output_shape of " + to_string(shape) +
                  ", expected 3 dimensions: [time, batch, depth]");
  }
}

}  // namespace
}  // namespace openrnn
