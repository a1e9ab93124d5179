// get_config and from_config, call, predict, and what a clone has.
#include "cells/support.h"
#include "openrnn/cells.h"
#include "openrnn/layers.h"

namespace openrnn {
namespace {

using namespace layers;
using testing::same;
using testing::same_bits;
using testing::thrown;
using testing::varied;

class Config : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

// The same weights give the same bits, so every argument that matters came through.
template <class L, class Run>
void expect_same_layer(L& layer, L& again, const Run& run) {
  const Tensor wanted = run(layer);
  (void)run(again);
  again.set_weights(layer.get_weights());
  EXPECT_TRUE(same(run(again), wanted));
  EXPECT_EQ(again.weights().size(), layer.weights().size());
}

TEST_F(Config, OfDenseEmbeddingAndDropout) {
  const auto dense = std::make_shared<Dense>(
      DenseOptions{.units = 3, .activation = Activation::kTanh, .use_bias = false, .name = "d"});
  const auto run = [](Dense& layer) { return layer.call(varied({2, 4})); };
  (void)run(*dense);
  const DenseOptions config = dense->get_config();
  EXPECT_EQ(config.name, "d");
  EXPECT_EQ(config.units, 3);
  EXPECT_EQ(config.activation, Activation::kTanh);
  EXPECT_FALSE(config.use_bias);
  expect_same_layer(*dense, *Dense::from_config(config), run);

  Dense unnamed({.units = 1});
  unnamed(varied({2, 4}));
  EXPECT_EQ(unnamed.get_config().name, "dense");

  Embedding embedding({.vocabulary = 5, .dim = 2});
  const std::vector<std::int32_t> indices{4, 0};
  const Tensor at(Array::of<std::int32_t>({2}, indices).view());
  expect_same_layer(embedding, *Embedding::from_config(embedding.get_config()),
                    [&](Embedding& layer) { return layer.call(at); });
  EXPECT_EQ(embedding.get_config().vocabulary, 5);

  Dropout dropout({.rate = 0.25, .seed = 3});
  const auto again = Dropout::from_config(dropout.get_config());
  EXPECT_TRUE(same(dropout.call(varied({8, 8}), true), again->call(varied({8, 8}), true)));
  EXPECT_THROW(Dense::from_config({.units = 0}), ArgumentError);
}

TEST_F(Config, OfRecurrentLayers) {
  const RnnSpec options{.num_layers = 2,
                        .num_units = 3,
                        .direction = Direction::kBidirectional,
                        .training = {.seed = 4}};
  const auto run = [](CudnnRnn& layer) { return layer.call(varied({3, 2, 5})).output; };
  CudnnLSTM lstm(options);
  CudnnGRU gru(options);
  CudnnRNNTanh tanh(options);
  CudnnRNNRelu relu(options);
  expect_same_layer<CudnnRnn>(lstm, *CudnnLSTM::from_config(lstm.get_config()), run);
  expect_same_layer<CudnnRnn>(gru, *CudnnGRU::from_config(gru.get_config()), run);
  expect_same_layer<CudnnRnn>(tanh, *CudnnRNNTanh::from_config(tanh.get_config()), run);
  expect_same_layer<CudnnRnn>(relu, *CudnnRNNRelu::from_config(relu.get_config()), run);
}

TEST_F(Config, OfThePlainNames) {
  const auto run = [](CudnnRnn& layer) { return layer.call(varied({3, 2, 5})).output; };
  const RnnSpec peephole{.num_layers = 2, .num_units = 3, .use_peepholes = true};
  LSTM lstm(peephole);
  GRU gru({.num_units = 3, .reset_after = false});
  RNN rnn({.num_units = 3, .activation = parse_cell_activation("elu(0.5)")});
  expect_same_layer<CudnnRnn>(lstm, *LSTM::from_config(lstm.get_config()), run);
  expect_same_layer<CudnnRnn>(gru, *GRU::from_config(gru.get_config()), run);
  expect_same_layer<CudnnRnn>(rnn, *RNN::from_config(rnn.get_config()), run);
  EXPECT_EQ(lstm.name() + " " + gru.name() + " " + rnn.name(), "lstm gru rnn");
  EXPECT_EQ(lstm.kernel().name(), "lstm/opaque_kernel");
  CudnnLSTM cudnn(peephole);
  expect_same_layer<CudnnRnn>(lstm, cudnn, run);
  EXPECT_NE(std::dynamic_pointer_cast<LSTM>(lstm.clone()), nullptr);
  EXPECT_NE(std::dynamic_pointer_cast<GRU>(gru.copy()), nullptr);
  EXPECT_NE(std::dynamic_pointer_cast<RNN>(rnn.with_arithmetic(Math::kFloat32, {})), nullptr);
  EXPECT_EQ(std::dynamic_pointer_cast<LSTM>(cudnn.clone()), nullptr);
  EXPECT_EQ(thrown<StateError>([] { (void)LSTM(4).canonical_weight_shapes(); }).substr(0, 30),
            "[LSTM] canonical_weight_shapes");
}

TEST_F(Config, OfAPlainNetworksActivation) {
  const auto mode_of = [](RnnSpec network) { return RNN(network).network().mode; };
  const CellActivation relu{CellActivationKind::kRelu}, tanh{CellActivationKind::kTanh};
  EXPECT_EQ(RNN(4).network().mode, RnnMode::kRnnTanh);
  EXPECT_EQ(mode_of({.mode = RnnMode::kRnnRelu, .num_units = 4}), RnnMode::kRnnRelu);
  for (const RnnMode before : {RnnMode::kRnnRelu, RnnMode::kRnnTanh, RnnMode::kLstm}) {
    const RNN by_relu({.mode = before, .num_units = 4, .activation = relu});
    EXPECT_EQ(by_relu.network().mode, RnnMode::kRnnRelu);
    EXPECT_TRUE(by_relu.network().has_cudnn_step());
    EXPECT_FALSE(by_relu.network().activation);
    EXPECT_EQ(mode_of({.mode = before, .num_units = 4, .activation = tanh}), RnnMode::kRnnTanh);
  }
  const RNN other({.mode = RnnMode::kRnnRelu,
                   .num_units = 4,
                   .activation = make_cell_activation(CellActivationKind::kElu)});
  EXPECT_EQ(other.network().candidate_activation().kind, CellActivationKind::kElu);
}

template <class Cell>
Tensor stepped(Cell& cell) {
  return cell.call(varied({2, 5}), cell.zero_state(2, DType::kFloat32)).output;
}

TEST_F(Config, OfCells) {
  const CompatibleCellOptions options{.num_units = 3, .seed = 4, .num_proj = 2};
  CudnnCompatibleLSTMCell lstm(options);
  CudnnCompatibleGRUCell gru({.num_units = 3});
  BasicRNNCell basic({.num_units = 3}, ops::relu);
  const auto run = [](RnnCell& cell) { return stepped(cell); };
  expect_same_layer<RnnCell>(lstm, *CudnnCompatibleLSTMCell::from_config(lstm.get_config()), run);
  expect_same_layer<RnnCell>(gru, *CudnnCompatibleGRUCell::from_config(gru.get_config()), run);
  expect_same_layer<RnnCell>(
      basic, *BasicRNNCell::from_config(basic.get_config(), basic.activation()), run);
}

TEST_F(Config, OfWrappers) {
  MultiRNNCell stack(
      {std::make_shared<CudnnCompatibleLSTMCell>(CompatibleCellOptions{.num_units = 3}),
       std::make_shared<CudnnCompatibleGRUCell>(CompatibleCellOptions{.num_units = 2})});
  EXPECT_EQ(stack.get_config(), stack.cells());
  // Of the same cells, whose variables they share.
  const auto again = MultiRNNCell::from_config(stack.get_config());
  EXPECT_TRUE(same(stepped(stack), stepped(*again)));
  EXPECT_THROW(MultiRNNCell::from_config({}), ArgumentError);
  DropoutWrapper dropped(stack.cells()[0], {.output_keep_prob = 0.5, .seed = 8});
  const auto wrapped = DropoutWrapper::from_config(dropped.cell(), dropped.get_config());
  EXPECT_EQ(wrapped->get_config().output_keep_prob, 0.5);
  EXPECT_TRUE(same(stepped(dropped), stepped(*wrapped)));
}

TEST_F(Config, PredictGivesHostArraysWithTrainingOff) {
  const Tensor in = Input({-1, 64});
  Dropout dropout({.rate = 0.5, .seed = 1});
  const Tensor dropped = dropout(in, true);
  Model model({in}, {dropped, ops::scale(in, 2.0)});
  const Tensor x = varied({4, 64});
  EXPECT_FALSE(same(model.call({x})[0], x));
  const std::vector<Array> outputs = model.predict({x});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_TRUE(same_bits(outputs[0], x.to_host()));
  EXPECT_TRUE(same_bits(outputs[1], ops::scale(x, 2.0).to_host()));
  EXPECT_THROW(model.predict({}), ArgumentError);
}

TEST_F(Config, ACloneHasAllThatTheLayerHas) {
  CudnnLSTM layer(
      {.network = {.num_units = 3, .training = {.dropout = 0.5, .seed = 2}}, .name = "mine"});
  layer.set_trainable(true);
  layer.stateful = true;
  layer.set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
  layer.add_update([] {});
  layer(varied({2, 2, 4}));
  layer(Input({-1, -1, 4}));
  layer.set_dropout_calls(7);
  const auto clone = layer.clone();
  EXPECT_NE(layer.saveable(), nullptr);
  EXPECT_EQ(clone->saveable(), layer.saveable());
  EXPECT_TRUE(clone->kernel().same_as(layer.kernel()));
  EXPECT_EQ(clone->input_size(), 4);
  EXPECT_EQ(clone->dropout_calls(), 7u);
  EXPECT_EQ(clone->name(), "mine");
  EXPECT_EQ(clone->scope_name(), layer.scope_name());
  EXPECT_EQ(&clone->graph(), &layer.graph());
  EXPECT_TRUE(clone->built());
  EXPECT_TRUE(clone->stateful);
  EXPECT_EQ(clone->weights().size(), 1u);
  EXPECT_EQ(clone->losses().size(), layer.losses().size());
  EXPECT_EQ(clone->updates().size(), 1u);
  EXPECT_EQ(clone->inbound_nodes(), layer.inbound_nodes());
  EXPECT_EQ(clone->input_spec()->ndim, layer.input_spec()->ndim);
  EXPECT_TRUE(clone->activity_regularizer());
  layer.set_trainable(false);
  EXPECT_FALSE(layer.clone()->trainable());
  // The next call's masks are the same.
  layer.set_dropout_calls(7);
  EXPECT_TRUE(same((*clone)(varied({2, 2, 4})).output, layer(varied({2, 2, 4})).output));
}

// Of the classes that have no clone() too; `layer` was called once.
void expect_whole_copy(Layer& layer) {
  SCOPED_TRACE(layer.name());
  layer.stateful = true;
  layer.add_update([] {});
  layer.set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
  for (const bool trainable : {true, false}) {
    layer.set_trainable(trainable);
    EXPECT_EQ(layer.copy()->trainable(), trainable);
  }
  const std::shared_ptr<Layer> copy = layer.copy();
  EXPECT_TRUE(copy->stateful);
  EXPECT_EQ(copy->built(), layer.built());
  EXPECT_EQ(copy->name(), layer.name());
  EXPECT_EQ(copy->scope_name(), layer.scope_name());
  EXPECT_EQ(copy->updates().size(), layer.updates().size());
  EXPECT_TRUE(copy->activity_regularizer());
  ASSERT_EQ(copy->weights().size(), layer.weights().size());
  for (std::size_t i = 0; i < layer.weights().size(); ++i) {
    EXPECT_TRUE(copy->weights()[i].same_as(layer.weights()[i])) << i;
  }
}

TEST_F(Config, ACopyOfAnyClassHasAllThatTheLayerHas) {
  const Tensor x = varied({2, 5}), in = Input({-1, 5});
  Dense dense({.units = 3, .name = "mine"});
  dense(x);
  expect_whole_copy(dense);
  Embedding embedding({.vocabulary = 5, .dim = 2});
  const std::vector<std::int32_t> indices{4, 0};
  embedding(Tensor(Array::of<std::int32_t>({2}, indices).view()));
  expect_whole_copy(embedding);
  Dropout dropout({.rate = 0.25, .seed = 3});
  dropout(x, true);
  expect_whole_copy(dropout);
  Model model({in}, {dense(in)});
  model({x});
  expect_whole_copy(model);
  const CompatibleCellOptions units{.num_units = 3};
  for (const std::shared_ptr<RnnCell>& cell : std::vector<std::shared_ptr<RnnCell>>{
           std::make_shared<CudnnCompatibleLSTMCell>(units),
           std::make_shared<CudnnCompatibleGRUCell>(units), std::make_shared<BasicRNNCell>(units),
           std::make_shared<MultiRNNCell>(std::vector<std::shared_ptr<RnnCell>>{
               std::make_shared<CudnnCompatibleGRUCell>(units)}),
           std::make_shared<DropoutWrapper>(std::make_shared<CudnnCompatibleGRUCell>(units),
                                            DropoutWrapperOptions{.output_keep_prob = 0.5})}) {
    (*cell)(x, cell->zero_state(2, DType::kFloat32));
    expect_whole_copy(*cell);
  }
}

// What was set after the constructor is in the configuration, and in a layer that is made of it.
TEST_F(Config, SaysWhatWasSetLater) {
  for (const bool trainable : {false, true}) {
    CudnnLSTM layer({.network = {.num_units = 3}, .trainable = !trainable});
    EXPECT_EQ(layer.get_config().trainable, !trainable);
    EXPECT_FALSE(layer.get_config().activity_regularizer);
    layer.set_trainable(trainable);
    layer.set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
    layer.build({-1, -1, 2});
    const auto config = layer.get_config();
    EXPECT_EQ(config.trainable, trainable);
    EXPECT_TRUE(config.activity_regularizer);
    EXPECT_EQ(config.name, "cudnn_lstm" + std::string(trainable ? "_2" : ""));
    const auto again = CudnnLSTM::from_config(config);
    EXPECT_EQ(again->trainable(), trainable);
    again->build({-1, -1, 2});
    EXPECT_EQ(again->trainable_weights().size(), trainable ? 1u : 0u);
  }
}

TEST_F(Config, ACopyHasThePartsNodesAndBuildOfItsLayer) {
  for (const std::string& name : {std::string("mine"), std::string()}) {
    Dense dense({.units = 3, .name = name}), next({.units = 2});
    const Tensor x = varied({2, 5}), in = Input({-1, 5});
    const Tensor y = dense(x);
    next(dense(in));
    const Variable extra(name + "extra", Array(DType::kFloat32, {1}));
    dense.track("extra", extra);
    const std::shared_ptr<Layer> copy = dense.copy();
    ASSERT_EQ(copy->outbound_nodes().size(), 1u);
    EXPECT_EQ(copy->outbound_nodes(), dense.outbound_nodes());
    EXPECT_EQ(copy->inbound_nodes(), dense.inbound_nodes());
    ASSERT_EQ(copy->weights().size(), 3u);
    EXPECT_TRUE(copy->weights()[2].same_as(extra));
    const LayerState found = copy->state(), wanted = dense.state();
    EXPECT_EQ(found.named, wanted.named);
    EXPECT_EQ(found.scope, wanted.scope);
    EXPECT_EQ(found.saveable_scope, wanted.saveable_scope);
    EXPECT_NE(found.saveable_scope, "");
    EXPECT_EQ(found.input_shape, wanted.input_shape);
    EXPECT_EQ(found.weight_names, wanted.weight_names);
    // Built by its class: an override that comes later is none of this build.
    copy->override_build([](const Shape&) { FAIL() << "built again"; });
    EXPECT_TRUE(copy->built());
    EXPECT_TRUE(same(dynamic_cast<Dense&>(*copy)(x), y));
  }
}

// The graph names a second layer of a class, and that is its name in the configuration.
TEST_F(Config, HasTheNameThatTheGraphGave) {
  Dense dense({.units = 1}), other_dense({.units = 1});
  Embedding embedding({.vocabulary = 5, .dim = 2}), other({.vocabulary = 5, .dim = 2});
  for (Dense* const each : {&dense, &other_dense}) each->build({-1, 4});
  for (Embedding* const each : {&embedding, &other}) each->build({-1});
  Dropout dropout({.rate = 0.25}), other_dropout({.rate = 0.25});
  for (Dropout* const each : {&dropout, &other_dropout}) (*each)(varied({2, 4}), true);
  EXPECT_EQ(dropout.get_config().name, dropout.name());
  EXPECT_EQ(other_dropout.get_config().name, "dropout_1");
  EXPECT_EQ(dense.get_config().name, "dense");
  EXPECT_EQ(other_dense.get_config().name, "dense_1");
  EXPECT_EQ(embedding.get_config().name, "embedding");
  EXPECT_EQ(other.get_config().name, "embedding_1");
}

}  // namespace
}  // namespace openrnn
