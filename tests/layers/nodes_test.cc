// Layers on symbolic tensors: nodes, Model, losses and updates.
#include "cells/support.h"
#include "openrnn/cells.h"
#include "openrnn/layers.h"

namespace openrnn {
namespace {

using layers::CudnnGRU;
using layers::CudnnLSTM;
using layers::Dense;
using layers::RnnResult;
using testing::same;
using testing::thrown;
using testing::varied;

class Nodes : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

TEST_F(Nodes, ACallOnAnInputIsRecorded) {
  const auto layer = std::make_shared<CudnnLSTM>(
      layers::CudnnRnnOptions{.network = {.num_units = 4, .direction = Direction::kBidirectional}});
  const Tensor in = Input({-1, -1, 5});
  const RnnResult made = (*layer)(in);
  EXPECT_EQ(made.output.shape(), (Shape{-1, -1, 8}));
  EXPECT_EQ(made.state[0].shape(), (Shape{2, -1, 4}));
  ASSERT_EQ(layer->inbound_nodes().size(), 1u);
  EXPECT_TRUE(same_tensor(layer->input()[0], in));
  EXPECT_TRUE(same_tensor(layer->output()[0], made.output));
  EXPECT_TRUE(same_tensor(layer->get_output_at(0)[2], made.state[1]));
  EXPECT_EQ(layer->input_shape(), (std::vector<Shape>{{-1, -1, 5}}));
  EXPECT_EQ(layer->output_shape().size(), 3u);
  EXPECT_TRUE(layer->input_mask().empty());
  const RnnResult rows_first =
      CudnnLSTM({.num_units = 4, .num_proj = 3})(Input({6, 7, 5}), {}, {.time_major = false});
  EXPECT_EQ(rows_first.output.shape(), (Shape{6, 7, 3}));
  EXPECT_EQ(rows_first.state[0].shape(), (Shape{6, 1, 3}));
  EXPECT_EQ(rows_first.state[1].shape(), (Shape{6, 1, 4}));
  Dense dense({.units = 2});
  dense(made.output);
  ASSERT_EQ(layer->outbound_nodes().size(), 1u);
  EXPECT_EQ(layer->outbound_nodes()[0], dense.inbound_nodes()[0]);
  (*layer)(Input({7, -1, 5}));
  EXPECT_EQ(layer->get_input_shape_at(1)[0], (Shape{7, -1, 5}));
  EXPECT_EQ(thrown<NotConnectedError>([&] { layer->input_shape(); }),
            "[input_shape] the layer 'cudnn_lstm' has 2 inbound nodes of different input shapes, "
            "expected one; ask get_input_shape_at(node_index)");
  EXPECT_EQ(thrown<ArgumentError>([&] { layer->get_output_at(2); }),
            "[get_output_at] node_index is 2, expected 0 to 1 as the layer 'cudnn_lstm' has 2 "
            "inbound nodes");
}

TEST_F(Nodes, AValueRecordsNone) {
  CudnnGRU layer({.num_units = 3});
  layer(varied({2, 1, 4}));
  EXPECT_TRUE(layer.inbound_nodes().empty());
  EXPECT_EQ(thrown<NotConnectedError>([&] { layer.output(); }),
            "[output] the layer 'cudnn_gru' is not connected: it has no inbound nodes as it has "
            "never been called on a symbolic tensor, expected a call on an Input");
  EXPECT_EQ(thrown<StateError>([&] { layer.get_input_at(0); }),
            "[get_input_at] the layer 'cudnn_gru' has never been called on a symbolic tensor and "
            "has no node, expected a call on an Input before");
}

TEST_F(Nodes, AModelRunsAndTrainsWhatWasRecorded) {
  const auto lstm = std::make_shared<CudnnLSTM>(layers::CudnnRnnOptions{
      .network = {.num_layers = 2, .num_units = 4, .training = {.seed = 1}}});
  const auto dense = std::make_shared<Dense>(layers::DenseOptions{.units = 3});
  const Tensor in = Input({-1, -1, 5}), h0 = Input({2, -1, 4});
  const RnnResult made = (*lstm)(in, {h0, h0});
  Model model({in, h0}, {(*dense)(made.output), made.state[1]});
  EXPECT_EQ(model.name(), "model");
  ASSERT_EQ(model.layers().size(), 2u);
  EXPECT_EQ(model.layers()[0], lstm.get());
  EXPECT_EQ(model.count_params(), lstm->count_params() + 15);
  for (const std::int64_t batch : {1, 3}) {
    const Tensor x = varied({6, batch, 5}), h = varied({2, batch, 4}, 2);
    const RnnResult direct = (*lstm)(x, {h, h});
    const std::vector<Tensor> out = model({x, h});
    EXPECT_TRUE(same(out[0], (*dense)(direct.output)));
    EXPECT_TRUE(same(out[1], direct.state[1]));
  }
  GradientTape tape;
  const Tensor loss = ops::reduce_sum(model({varied({2, 1, 5}), varied({2, 1, 4})})[0]);
  for (const DeviceArray& gradient : tape.gradient(loss, model.trainable_weights())) {
    EXPECT_FALSE(gradient.empty());
  }
  EXPECT_EQ(thrown<ArgumentError>([&] {
              model({varied({2, 1, 4}), varied({2, 1, 4})});
            }),
            "[Input] the value is float32 of shape [2, 1, 4], expected float32 of shape "
            "[-1, -1, 5] (-1: any)");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              model({varied({2, 1, 5})});
            }),
            "[model] 1 inputs, expected 2");
  EXPECT_EQ(thrown<ArgumentError>([&] { Model({in}, {made.output}); }),
            "[Model] an output depends on the Input 'Input' of shape [2, -1, 4], expected it among "
            "the inputs");
  // Also one that comes after a computed value.
  const Tensor first = Input({2, 5}), second = Input({2, 5});
  EXPECT_NE(thrown<ArgumentError>([&] { Model({first}, {ops::add(ops::tanh(first), second)}); }),
            "");
}

TEST_F(Nodes, InputsAndOutputsOfAModelAreSymbolic) {
  const Tensor in = Input({-1, 5}), out = ops::tanh(in), value = varied({2, 5});
  const auto error = [](const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    return thrown<ArgumentError>([&] { Model(inputs, outputs); });
  };
  EXPECT_EQ(error({}, {out}), "[Model] no inputs, expected at least one symbolic tensor");
  EXPECT_EQ(error({in}, {}), "[Model] no outputs, expected at least one symbolic tensor");
  const std::string expected = " is not symbolic, expected an Input or what descends from one";
  EXPECT_EQ(error({in, value}, {out}), "[Model] inputs[1]" + expected);
  EXPECT_EQ(error({in}, {value}), "[Model] outputs[0]" + expected);
}

// What is between may be an input as well: then it is given, and what else its call makes is
// computed.
TEST_F(Nodes, AnOutputOfACallMayBeAnInput) {
  const auto lstm = std::make_shared<CudnnLSTM>(
      layers::CudnnRnnOptions{.network = {.num_units = 4, .training = {.seed = 1}}});
  const Tensor in = Input({-1, -1, 5}), x = varied({3, 2, 5}), h = varied({1, 2, 4}, 2);
  const RnnResult made = (*lstm)(in), direct = (*lstm)(x);
  Model model({in, made.state[0]},
              {made.output, ops::scale(made.state[0], 2.0), made.state[0], made.state[1]});
  const std::vector<Tensor> out = model({x, h});
  EXPECT_TRUE(same(out[0], direct.output));
  EXPECT_TRUE(same(out[1], ops::scale(h, 2.0)));
  EXPECT_TRUE(same(out[2], h));
  EXPECT_TRUE(same(out[3], direct.state[1]));
}

TEST_F(Nodes, TrainingIsAsRecordedUnlessSaid) {
  const auto lstm = std::make_shared<CudnnLSTM>(layers::CudnnRnnOptions{
      .network = {.num_layers = 2, .num_units = 8, .training = {.dropout = 0.5, .seed = 3}}});
  const Tensor in = Input({-1, -1, 5}), x = varied({4, 2, 5});
  Model model({in}, {(*lstm)(in).output});
  const Tensor still = (*lstm)(x, {}, {.training = false}).output;
  EXPECT_FALSE(same(model({x})[0], still));
  EXPECT_FALSE(same(model({x})[0], model({x})[0])) << "masks advance";
  EXPECT_TRUE(same(model({x}, false)[0], still));
  GradientTape tape;
  const Tensor y = ops::reduce_sum(model({x}, false)[0]);
  EXPECT_NE(thrown<ArgumentError>([&] {
              tape.gradient(y, model.weights());
            }).find("is_training must be True"),
            std::string::npos);
}

TEST_F(Nodes, AModelKeepsSharedLayersAliveAndNoticesOthersGone) {
  const Tensor in = Input({-1, 5});
  std::unique_ptr<Model> owner, orphan;
  {
    const auto kept = std::make_shared<Dense>(layers::DenseOptions{.units = 2});
    owner = std::make_unique<Model>(std::vector{in}, std::vector{(*kept)(in)});
    Dense gone({.units = 2});
    orphan = std::make_unique<Model>(std::vector{in}, std::vector{gone(in)});
  }
  EXPECT_EQ((*owner)({varied({3, 5})})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(thrown<StateError>([&] {
              (*orphan)({varied({3, 5})});
            }),
            "[Model] the layer 'dense_1' is gone, expected it to outlive the tensors that it made "
            "(one made by std::make_shared does)");
}

TEST_F(Nodes, AModelOnAnInputIsRecordedAgain) {
  const auto lstm =
      std::make_shared<CudnnLSTM>(layers::CudnnRnnOptions{.network = {.num_units = 4}});
  const auto dense = std::make_shared<Dense>(layers::DenseOptions{.units = 5});
  const Tensor in = Input({-1, -1, 5});
  Model inner({in}, {(*dense)((*lstm)(in).output)});
  const Tensor other = Input({3, -1, 5});
  Model outer({other}, inner({inner({other})[0]}));
  EXPECT_EQ(outer.outputs()[0].shape(), (Shape{3, -1, 5}));
  EXPECT_EQ(outer.layers().size(), 2u);
  EXPECT_EQ(lstm->inbound_nodes().size(), 3u);
  const Tensor x = varied({3, 2, 5});
  EXPECT_TRUE(same(outer({x})[0], inner({inner({x})[0]})[0]));
}

TEST_F(Nodes, ActivityLossesAreCollectedInBothWays) {
  const Regularizer regularizer = [](const Tensor& y) { return ops::l2_regularization(y, 0.1); };
  const auto layer = std::make_shared<CudnnGRU>(
      layers::CudnnRnnOptions{.network = {.num_units = 3}, .activity_regularizer = regularizer});
  const Tensor x = varied({2, 1, 4});
  for (int i = 0; i < 2; ++i) {
    const RnnResult out = (*layer)(x);
    const std::vector<Tensor> losses = layer->losses();
    ASSERT_EQ(losses.size(), 2u) << "one an output of the latest call";
    EXPECT_EQ(losses[0].item(), regularizer(out.output).item());
    EXPECT_EQ(losses[1].item(), regularizer(out.state[0]).item());
  }
  EXPECT_EQ(layer->get_losses_for({x}).size(), 2u);
  EXPECT_TRUE(layer->get_losses_for({varied({2, 1, 4}, 5)}).empty());
  EXPECT_TRUE(layer->get_losses_for({}).empty());
  EXPECT_EQ(graph_.regularization_losses().size(), 2u);
  const Tensor in = Input({-1, -1, 4});
  Model model({in}, {(*layer)(in).output});
  EXPECT_TRUE(model.losses()[0].is_symbolic());
  EXPECT_THROW(model.losses()[0].item(), StateError);
  EXPECT_EQ(layer->get_losses_for({in}).size(), 2u);
  GradientTape tape;
  const Tensor y = model({x})[0];
  ASSERT_EQ(model.losses().size(), 2u);
  EXPECT_EQ(model.losses()[0].item(), regularizer(y).item());
  EXPECT_FALSE(tape.gradient(model.losses()[0], model.weights())[0].empty());
  const auto copied = model.copy();
  ASSERT_EQ(copied->losses().size(), 2u) << "those of the call before it was copied";
  ASSERT_FALSE(copied->losses()[0].is_symbolic());
  EXPECT_EQ(copied->losses()[0].item(), regularizer(y).item());
}

// What a call adds counts once, as it was recorded, however often a model runs it again.
TEST_F(Nodes, LossesAndUpdatesOfARecordedCallAreAskedForOnce) {
  const auto layer = std::make_shared<Dense>(layers::DenseOptions{.units = 2});
  const ReplayFunction call = [&](const std::vector<Tensor>& given, const Replay&) {
    const Tensor y = (*layer)(given[0]);
    layer->add_loss(ops::reduce_sum(y));
    layer->add_update([] {});
    return std::vector{y};
  };
  const Tensor in = Input({-1, 3}), x = varied({2, 3});
  Model model({in}, layer->call_as({in}, call));
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(layer->get_losses_for({}).size(), 1u) << run;
    EXPECT_EQ(layer->get_updates_for({}).size(), 1u) << run;
    EXPECT_TRUE(layer->get_losses_for({in}).empty() && layer->get_updates_for({in}).empty());
    EXPECT_TRUE(layer->get_losses_for({x}).empty() && layer->get_updates_for({x}).empty());
    const Tensor y = model({x})[0];
    ASSERT_EQ(model.losses().size(), 1u) << run;
    EXPECT_EQ(model.losses()[0].item(), ops::reduce_sum(y).item());
    EXPECT_EQ(model.updates().size(), 1u) << run;
  }
}

TEST_F(Nodes, RecordedLossesAreAddedOnce) {
  const auto layer = std::make_shared<Dense>(layers::DenseOptions{.units = 2});
  const Tensor in = Input({-1, 3});
  const Tensor y = (*layer)(in);
  layer->add_loss(ops::reduce_sum(ops::square(y)), {in});
  Model model({in}, {y});
  const auto recorded = model.recorded_losses();
  ASSERT_EQ(recorded.size(), 1u);
  Model::add_losses(recorded);
  EXPECT_EQ(model.recorded_losses().size(), 1u);
  EXPECT_EQ(layer->losses().size(), 1u);
  model({varied({2, 3})});
  EXPECT_EQ(model.losses().size(), 1u);
}

TEST_F(Nodes, UpdatesReachTheGraphWhenTheLayerIsCalled) {
  CudnnGRU layer({.num_units = 3});
  int runs = 0;
  const Tensor x = varied({2, 1, 4});
  layer.add_update([&] { ++runs; });
  layer.add_update([&] { runs += 10; }, {x});
  EXPECT_TRUE(graph_.updates().empty());
  layer(x);
  layer(x);
  ASSERT_EQ(graph_.updates().size(), 2u);
  for (const auto& update : graph_.updates()) (*update)();
  EXPECT_EQ(runs, 11);
  EXPECT_EQ(layer.get_updates_for({}).size(), 1u);
  EXPECT_EQ(layer.get_updates_for({x}).size(), 1u);
  layer.set_trainable(false);
  EXPECT_TRUE(layer.updates().empty());
  layer.stateful = true;
  EXPECT_EQ(layer.updates().size(), 2u);
}

TEST_F(Nodes, CellsAndLoopsAreRecorded) {
  const auto cell = [](std::int64_t units) {
    return std::make_shared<CudnnCompatibleLSTMCell>(CompatibleCellOptions{.num_units = units});
  };
  const auto stack =
      std::make_shared<MultiRNNCell>(std::vector<std::shared_ptr<RnnCell>>{cell(3), cell(4)});
  const Tensor in = Input({-1, -1, 5});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const DynamicRnnResult loop = dynamic_rnn(*stack, in, options);
  EXPECT_EQ(loop.outputs.shape(), (Shape{-1, -1, 4}));
  Model model({in}, {loop.outputs, loop.state[3]});
  EXPECT_EQ(model.weights().size(), 4u);
  EXPECT_EQ(model.weights()[0].name(),
            "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel");
  const Tensor x = varied({6, 2, 5});
  const DynamicRnnResult direct = dynamic_rnn(*stack, x, options);
  EXPECT_TRUE(same(model({x})[0], direct.outputs));
  EXPECT_TRUE(same(model({x})[1], direct.state[3]));
  const auto single = cell(3);
  const Tensor row = Input({-1, 5}), c = Input({-1, 3}), h = Input({-1, 3});
  const CellResult step = (*single)(row, {c, h});
  EXPECT_EQ(single->inbound_nodes().size(), 1u);
  Model stepper({row, c, h}, {step.output, step.state[0]});
  const Tensor a = varied({2, 5}), b = varied({2, 3}, 2), d = varied({2, 3}, 3);
  EXPECT_TRUE(same(stepper({a, b, d})[0], (*single)(a, {b, d}).output));
}

TEST_F(Nodes, LengthsMayBeSymbolic) {
  const auto layer =
      std::make_shared<CudnnGRU>(layers::CudnnRnnOptions{.network = {.num_units = 3}});
  const auto cell = std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 3});
  const Tensor in = Input({-1, -1, 4}), lengths = Input({-1}, DType::kInt32);
  const RnnResult made = (*layer)(in, {}, {.lengths = lengths});
  const DynamicRnnResult loop =
      dynamic_rnn(*cell, in, {.lengths = lengths, .dtype = DType::kFloat32, .time_major = true});
  Model model({in, lengths}, {made.output, made.state[0], loop.outputs});
  const Tensor x = varied({4, 2, 4});
  for (const std::vector<std::int32_t>& given : {std::vector{4, 1}, std::vector{0, 3}}) {
    const std::vector<Tensor> out =
        model({x, Tensor(ConstArrayView{given.data(), DType::kInt32, {2}})});
    const RnnResult direct = (*layer)(x, {}, {.sequence_lengths = given});
    EXPECT_TRUE(same(out[0], direct.output));
    EXPECT_TRUE(same(out[1], direct.state[0]));
    EXPECT_TRUE(
        same(out[2],
             dynamic_rnn(*cell, x,
                         {.sequence_lengths = given, .dtype = DType::kFloat32, .time_major = true})
                 .outputs));
  }
  const std::vector<std::int32_t> some{3, 1};
  const Tensor on_device(ConstArrayView{some.data(), DType::kInt32, {2}});
  EXPECT_TRUE(same((*layer)(x, {}, {.lengths = on_device}).output,
                   (*layer)(x, {}, {.sequence_lengths = some}).output));
  EXPECT_EQ(thrown<ArgumentError>([&] { (*layer)(x, {}, {.lengths = varied({2})}); }),
            "[cudnn_gru] sequence_lengths is float32 of shape [2], expected int32 of 1 dimension: "
            "one a row of the batch");
}

TEST_F(Nodes, LengthsOfAReplayAreChecked) {
  const auto cell = std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 3});
  const Tensor in = Input({-1, -1, 4}), lengths = Input({-1}, DType::kInt32);
  Model model(
      {in, lengths},
      {dynamic_rnn(*cell, in, {.lengths = lengths, .dtype = DType::kFloat32, .time_major = true})
           .outputs});
  const auto error = [&](const std::vector<std::int32_t>& given) {
    const auto size = static_cast<std::int64_t>(given.size());
    const Tensor values(ConstArrayView{given.data(), DType::kInt32, {size}});
    return thrown<ArgumentError>([&] { model({varied({4, 2, 4}), values}); });
  };
  EXPECT_EQ(error({4, 5}), "[dynamic_rnn] sequence_lengths[1] is 5, expected 0 to 4");
  EXPECT_EQ(error({-1, 4}), "[dynamic_rnn] sequence_lengths[0] is -1, expected 0 to 4");
  EXPECT_EQ(error({4}), "[dynamic_rnn] sequence_lengths has 1 values, expected 2");
}

TEST_F(Nodes, BidirectionalLoopsAreRecorded) {
  const auto cells = [] {
    std::vector<std::shared_ptr<RnnCell>> list;
    for (int i = 0; i < 2; ++i) {
      list.push_back(
          std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 3}));
    }
    return list;
  };
  const auto fw = cells(), bw = cells();
  const StackBidirectionalOptions options{
      .dtype = DType::kFloat32, .sequence_lengths = {{4, 1}}, .time_major = true};
  const Tensor in = Input({-1, -1, 5}), x = varied({4, 2, 5});
  const auto recorded = stack_bidirectional_dynamic_rnn(fw, bw, in, options);
  const Tensor lengths = Input({-1}, DType::kInt32);
  Model open({in, lengths},
             {stack_bidirectional_dynamic_rnn(
                  fw, bw, in, {.dtype = DType::kFloat32, .lengths = lengths, .time_major = true})
                  .outputs});
  EXPECT_EQ(recorded.outputs.shape(), (Shape{-1, -1, 6}));
  Model model({in}, {recorded.outputs, recorded.states_bw[1][0]});
  EXPECT_EQ(model.weights().size(), 24u);
  const auto direct = stack_bidirectional_dynamic_rnn(fw, bw, x, options);
  EXPECT_TRUE(same(model({x})[0], direct.outputs));
  EXPECT_TRUE(same(model({x})[1], direct.states_bw[1][0]));
  const std::vector<std::int32_t> given{4, 1};
  EXPECT_TRUE(
      same(open({x, Tensor(ConstArrayView{given.data(), DType::kInt32, {2}})})[0], direct.outputs));
}

TEST_F(Nodes, AFailedCallChangesNothing) {
  CudnnLSTM layer({.num_units = 3});
  EXPECT_THROW(layer(varied({2, 1, 4}), {}, {.sequence_lengths = {{3}}}), ArgumentError);
  EXPECT_THROW(layer(varied({2, 1, 4}), {varied({1, 1, 3})}), ArgumentError);
  EXPECT_THROW(layer(varied({2, 4})), ArgumentError);
  EXPECT_THROW(layer.build({-1, -1, -1}), ArgumentError);
  CudnnLSTM failing(
      {.network = {.num_units = 3}, .kernel_initializer = [](ArrayView, RandomStream&) {
         throw StateError("no numbers today");
       }});
  EXPECT_THROW(failing(varied({2, 1, 4})), StateError);
  EXPECT_FALSE(layer.built());
  EXPECT_TRUE(graph_.variables().empty());
  EXPECT_TRUE(graph_.saveables().empty());
  layer(varied({2, 1, 4}));
  EXPECT_EQ(layer.scope_name(), "cudnn_lstm");
}

TEST_F(Nodes, CloneSharesTheVariablesAlone) {
  const auto layer =
      std::make_shared<CudnnLSTM>(layers::CudnnRnnOptions{.network = {.num_units = 3}});
  const Tensor x = varied({2, 1, 4});
  (*layer)(Input({-1, -1, 4}));
  const auto copy = layer->clone();
  EXPECT_TRUE(copy->kernel().same_as(layer->kernel()));
  EXPECT_EQ(copy->scope_name(), layer->scope_name());
  EXPECT_EQ(copy->inbound_nodes().size(), 1u);
  EXPECT_TRUE(same((*copy)(x).output, (*layer)(x).output));
  copy->set_trainable(false);
  EXPECT_TRUE(layer->trainable());
  CudnnLSTM again(layer->get_config());
  EXPECT_EQ(again.name(), "cudnn_lstm");
  EXPECT_EQ(again.network().num_units, 3);
}

TEST_F(Nodes, EveryClassCopies) {
  const Tensor x = varied({2, 5}), in = Input({-1, 5});
  Dense dense({.units = 3});
  const Tensor y = dense(x);
  const auto dense_copy = dense.copy();
  dense_copy->set_trainable(false);
  EXPECT_TRUE(dense.trainable());
  EXPECT_TRUE(same((dynamic_cast<Dense&>(*dense_copy))(x), y));
  const auto gru = std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 3});
  const auto lstm =
      std::make_shared<CudnnCompatibleLSTMCell>(CompatibleCellOptions{.num_units = 4});
  const auto plain = std::make_shared<BasicRNNCell>(CompatibleCellOptions{.num_units = 2});
  MultiRNNCell stack({gru, std::make_shared<DropoutWrapper>(lstm, DropoutWrapperOptions{}), plain});
  const CellState zero = stack.zero_state(2, DType::kFloat32);
  const CellResult first = stack(x, zero);
  const std::size_t variables = graph_.variables().size();
  const auto stack_copy = stack.copy();
  EXPECT_EQ(stack_copy->name(), stack.name());
  const CellResult again = dynamic_cast<MultiRNNCell&>(*stack_copy)(x, zero);
  EXPECT_TRUE(same(first.output, again.output));
  dynamic_cast<MultiRNNCell&>(*stack_copy).cells()[0]->set_trainable(false);
  EXPECT_TRUE(gru->trainable());
  Model model({in}, {dense(in)});
  const auto model_copy = model.copy();
  EXPECT_EQ(model_copy->name(), "model");
  EXPECT_TRUE(same(dynamic_cast<Model&>(*model_copy)({x})[0], y));
  EXPECT_EQ(Model({in}, {dense(in)}).name(), "model_1");
  EXPECT_EQ(graph_.variables().size(), variables);
}

// A copy goes on with the masks of its original, and takes no seed of the graph's.
TEST_F(Nodes, ACopyOfADropoutWrapperHasItsMasks) {
  graph_.set_seed(1);
  DropoutWrapper dropped(
      std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 30}),
      {.output_keep_prob = 0.5});
  const Tensor x = varied({2, 5});
  const CellState start = dropped.zero_state(2, DType::kFloat32);
  dropped(x, start);
  const std::int64_t next = graph_.op_seeds({}).second + 1;
  const auto copy = dropped.copy();
  EXPECT_EQ(graph_.op_seeds({}).second, next);
  EXPECT_EQ(copy->name(), dropped.name());
  const Tensor masked = dropped(x, start).output;
  EXPECT_TRUE(same(dynamic_cast<DropoutWrapper&>(*copy)(x, start).output, masked));
  EXPECT_FALSE(same(dropped(x, start).output, masked));
}

TEST_F(Nodes, LayerProtocol) {
  CudnnLSTM layer({.num_units = 3, .direction = Direction::kBidirectional});
  EXPECT_FALSE(layer.input_spec());
  EXPECT_EQ(thrown<StateError>([&] { layer.canonical_weight_shape(0); }),
            "[CudnnLSTM] canonical_weight_shape of 'cudnn_lstm' before the input shape is known, "
            "expected a build or a call before");
  layer.build({-1, -1, 4});
  EXPECT_EQ(layer.input_spec()->axes.at(-1), 4);
  EXPECT_EQ(layer.compute_output_shape({7, -1, 4}), (Shape{7, -1, 6}));
  EXPECT_EQ(layer.canonical_weight_shape(0).size(), 16u);
  EXPECT_EQ(thrown<ArgumentError>([&] { layer.canonical_weight_shape(1); }),
            "[cudnn_lstm] canonical_weight_shape of layer 1, expected 0 to 0");
  EXPECT_EQ(thrown<StateError>([&] { layer.create_saveable(); }),
            "Cudnn saveable already created [cudnn_lstm], expected a layer without");
  EXPECT_EQ(thrown<TypeError>([&] { layer.compute_mask(varied({2}), varied({2})); }),
            "[compute_mask] the layer 'cudnn_lstm' was given a mask, expected none: it does not "
            "support masking");
  const Variable extra = layer.add_weight("extra", {2}, {.trainable = false});
  EXPECT_EQ(extra.name(), "cudnn_lstm/extra");
  EXPECT_EQ(layer.non_trainable_weights().size(), 1u);
}

}  // namespace
}  // namespace openrnn
