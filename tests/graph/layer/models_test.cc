// Models of recorded calls: what they read, run, lose and copy.
#include "graph/layer/support.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

// Gives the tangent of its first input and counts how often it computes.
class Counting : public Layer {
 public:
  explicit Counting(std::string name = "") : Layer(std::move(name), "counting", DType::kFloat64) {}
  Tensor operator()(const std::vector<Tensor>& inputs) {
    ensure_built(inputs[0].shape());
    return run_call(inputs, {{inputs[0].dtype(), inputs[0].shape()}})[0];
  }
  std::shared_ptr<Layer> copy() const override {
    auto made = std::make_shared<Counting>();
    made->copy_layer(*this);
    return made;
  }
  int calls = 0;
  std::optional<bool> training;

 protected:
  void do_build(const Shape&) override {}
  std::vector<Tensor> compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override {
    ++calls;
    training = replay.training;
    return {ops::tanh(inputs[0])};
  }
};

// What calls a layer inside its own call and adds a loss. Not its owner: the nodes keep it.
ReplayFunction call_with_a_loss(Counting& layer) {
  return [&layer](const std::vector<Tensor>& in, const Replay&) {
    const Tensor y = layer({in[0]});
    layer.add_loss(ops::reduce_sum(y));
    return std::vector{y};
  };
}

class Models : public ::testing::Test {
 protected:
  static Tensor input(const Shape& shape = {2}) { return Input(shape, DType::kFloat64); }

  Graph graph_;
  Graph::AsDefault as_default_{graph_};
  const Tensor x_ = random_tensor({2}, 1);
};

TEST_F(Models, EachCallRunsOnceAndNoOther) {
  const auto shared = std::make_shared<Counting>(), unused = std::make_shared<Counting>();
  const Tensor in = input();
  const Tensor y = (*shared)({in});
  (*unused)({y});
  Model model({in}, {y, ops::negate(y), ops::add(y, y), y});
  const std::vector<Tensor> out = model({x_});
  EXPECT_EQ(shared->calls, 1);
  EXPECT_EQ(unused->calls, 0);
  ASSERT_EQ(out.size(), 4U);
  EXPECT_EQ(values_of(out[0]), values_of(ops::tanh(x_)));
  EXPECT_EQ(values_of(out[3]), values_of(out[0]));
  // What is given is not computed.
  Model from_y({y}, {ops::negate(y)});
  EXPECT_EQ(values_of(from_y({x_})[0]), values_of(ops::negate(x_)));
  EXPECT_EQ(shared->calls, 1);
  EXPECT_TRUE(from_y.layers().empty());
}

TEST_F(Models, TrainingIsSaidToEachCall) {
  const auto layer = std::make_shared<Counting>();
  const Tensor in = input();
  Model model({in}, {(*layer)({in})});
  model({x_});
  EXPECT_FALSE(layer->training.has_value());
  for (const bool training : {true, false}) {
    model({x_}, training);
    EXPECT_EQ(layer->training, training);
    model.call({x_}, training);
    EXPECT_EQ(layer->training, training);
  }
  layer->training = true;
  EXPECT_EQ(values_of(Tensor(model.predict({x_})[0].view())), values_of(ops::tanh(x_)));
  EXPECT_EQ(layer->training, false);
}

TEST_F(Models, LayersComeInTheOrderOfTheirFirstCall) {
  const auto a = std::make_shared<Counting>(), b = std::make_shared<Counting>(),
             c = std::make_shared<Counting>();
  const Tensor in = input();
  const Tensor first = (*b)({in}), second = (*a)({first}), third = (*b)({second});
  Model model({in}, {(*c)({third, first})});
  EXPECT_EQ(model.layers(), (std::vector<Layer*>{b.get(), a.get(), c.get()}));
  EXPECT_EQ(model.sublayers(), model.layers());
  model({x_});
  EXPECT_EQ(b->calls, 2);
}

TEST_F(Models, VariablesThatAreReadAreWeights) {
  const Variable w("w", random_tensor({2}, 2).to_host()),
      fixed("fixed", random_tensor({2}, 3).to_host(), false);
  const Tensor in = input();
  Model model({in}, {ops::add(ops::multiply(in, w.read()), fixed.read()), ops::add(in, w.read())});
  EXPECT_EQ(names_of(model.weights()), (std::vector<std::string>{"w", "fixed"}));
  EXPECT_EQ(names_of(model.trainable_weights()), (std::vector<std::string>{"w"}));
  EXPECT_EQ(model.count_params(), 4);
  w.assign(random_tensor({2}, 5).to_host().view());
  EXPECT_EQ(values_of(model({x_})[0]),
            values_of(ops::add(ops::multiply(x_, w.read()), fixed.read())));
  // A variable of another graph is a constant.
  Graph other;
  std::optional<Graph::AsDefault> inside(std::in_place, other);
  const Tensor there = input();
  Model constant({there}, {ops::add(there, w.read())});
  const std::vector<double> before = values_of(ops::add(x_, w.read()));
  w.assign(random_tensor({2}, 6).to_host().view());
  EXPECT_EQ(values_of(constant({x_})[0]), before);
  EXPECT_TRUE(constant.weights().empty());
}

TEST_F(Models, ARecordedReadIsOfItsVariable) {
  const Variable w("w", random_tensor({2, 3}, 2).to_host());
  const Tensor read = defer_read(w);
  EXPECT_EQ(read.dtype(), DType::kFloat64);
  EXPECT_EQ(read.shape(), (Shape{2, 3}));
  const SymbolicCall& call = *read.symbol()->call;
  EXPECT_EQ(call.op, "ReadVariable");
  EXPECT_TRUE(call.variable.same_as(w));
  EXPECT_EQ(call.graph, &graph_);
  EXPECT_EQ(call.graph_id, graph_.id());
  const Tensor named = Input({0, -1}, DType::kInt32, "mine"), plain = Input({4});
  EXPECT_EQ(named.symbol()->call->op, "mine");
  EXPECT_EQ(plain.symbol()->call->op, "Input");
  EXPECT_EQ(named.dtype(), DType::kInt32);
  EXPECT_EQ(named.shape(), (Shape{0, -1}));
  EXPECT_EQ(plain.dtype(), DType::kFloat32);
  EXPECT_FALSE(named.symbol()->call->run);
}

// A model's own regularizer is of its outputs, beside those of its layers.
TEST_F(Models, ItsOutputsAreRegularized) {
  const auto layer = std::make_shared<Counting>();
  layer->set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
  const Tensor in = input();
  const Tensor y = (*layer)({in});
  Model model({in}, {ops::negate(y), ops::square(y)});
  model.set_activity_regularizer(
      [](const Tensor& z) { return ops::scale(ops::reduce_sum(z), 3.0); });
  for (const std::uint64_t seed : {1, 2}) {
    const Tensor x = random_tensor({2}, seed);
    const std::vector<Tensor> out = model({x});
    EXPECT_EQ(numbers_of(model.losses()),
              (std::vector<double>{ops::scale(ops::reduce_sum(out[0]), 3.0).item(),
                                   ops::scale(ops::reduce_sum(out[1]), 3.0).item(),
                                   ops::reduce_sum(ops::tanh(x)).item()}));
    EXPECT_TRUE(model.has_call_losses());
  }
}

TEST_F(Models, SymbolicLossesAreThoseThatItsInputsReach) {
  const auto layer = std::make_shared<Counting>();
  const Tensor a = input(), b = input();
  const Tensor of_a = (*layer)({a}), of_b = (*layer)({b});
  layer->add_loss(ops::reduce_sum(of_a), {a});
  layer->add_loss(ops::scale(ops::reduce_sum(of_b), 2.0), {b});
  Model first({a}, {of_a}), second({b}, {of_b}), both({a, b}, {of_a, of_b});
  const Tensor y = random_tensor({2}, 2);
  const double sum_x = ops::reduce_sum(ops::tanh(x_)).item(),
               sum_y = ops::scale(ops::reduce_sum(ops::tanh(y)), 2.0).item();
  const auto losses = [](Model& model, const std::vector<Tensor>& values) {
    EXPECT_TRUE(model.losses()[0].is_symbolic());
    EXPECT_FALSE(model.has_call_losses());
    model(values);
    return numbers_of(model.losses());
  };
  EXPECT_EQ(losses(first, {x_}), (std::vector<double>{sum_x}));
  EXPECT_EQ(losses(second, {y}), (std::vector<double>{sum_y}));
  EXPECT_EQ(losses(both, {x_, y}), (std::vector<double>{sum_x, sum_y}));
  const std::vector<Model::SymbolicLoss> recorded = first.recorded_losses();
  ASSERT_EQ(recorded.size(), 1U);
  EXPECT_EQ(recorded[0].layer, layer);
  EXPECT_FALSE(recorded[0].by_call);
  EXPECT_TRUE(same_tensor(recorded[0].inputs.at(0), a));
  EXPECT_EQ(first.recorded_calls().front()->op, "Input");
  EXPECT_EQ(first.recorded_calls().size(), 3U) << "the Input, the layer, the loss";
}

TEST_F(Models, ACopyHasItsNameItsLossesAndItsLayers) {
  const auto layer = std::make_shared<Counting>();
  const Tensor in = input();
  const Tensor y = (*layer)({in});
  layer->add_loss(ops::reduce_sum(y), {in});
  Model model({in}, {y}), named({in}, {y}, "given");
  const auto before = std::dynamic_pointer_cast<Model>(model.copy());
  EXPECT_TRUE(before->losses()[0].is_symbolic());
  EXPECT_FALSE(before->has_call_losses());
  model({x_});
  EXPECT_TRUE(model.has_call_losses());
  const auto copy = std::dynamic_pointer_cast<Model>(model.copy());
  EXPECT_EQ(copy->name(), "model");
  EXPECT_EQ(named.copy()->name(), "given");
  EXPECT_TRUE(copy->has_call_losses());
  EXPECT_EQ(copy->losses()[0].item(), ops::reduce_sum(ops::tanh(x_)).item());
  EXPECT_EQ(copy->layers(), model.layers());
  EXPECT_TRUE(same_tensor(copy->inputs()[0], in) && same_tensor(copy->outputs()[0], y));
  EXPECT_EQ(Model({in}, {y}).name(), "model_1") << "copies take none";
}

// What a call makes belongs to its layer and lies in its graph, wherever the model runs.
TEST_F(Models, WhatACallMakesIsItsLayers) {
  const auto layer = std::make_shared<Counting>("maker");
  const ReplayFunction call = [](const std::vector<Tensor>& in, const Replay&) {
    const Variable w = get_variable("made", {2}, {.dtype = DType::kFloat64});
    return std::vector{ops::multiply(in[0], w.read())};
  };
  const Tensor in = input();
  Model model({in}, layer->call_as({in}, call));
  EXPECT_EQ(names_of(layer->weights()), (std::vector<std::string>{"maker/made"}));
  const Variable made = layer->weights()[0];
  {
    Graph other;
    const Graph::AsDefault inside(other);
    EXPECT_EQ(values_of(model({x_})[0]), values_of(ops::multiply(x_, made.read())));
    EXPECT_TRUE(other.variables().empty());
    EXPECT_EQ(&Graph::current(), &other);
  }
  EXPECT_EQ(layer->weights().size(), 1U);
  layer->set_trainable(false);
  EXPECT_FALSE(made.trainable());
  EXPECT_TRUE(graph_.trainable_variables().empty());
}

TEST_F(Models, AnOutputKeepsTheLayersBehindIt) {
  std::weak_ptr<Counting> weak;
  Tensor out;
  {
    const auto first = std::make_shared<Counting>(), second = std::make_shared<Counting>();
    weak = first;
    out = ops::negate((*second)({ops::square((*first)({input()}))}));
  }
  EXPECT_FALSE(weak.expired());
  const auto calls = calls_between({}, {out});
  ASSERT_EQ(calls.size(), 5U);
  std::vector<std::string> ops;
  for (const auto& call : calls) ops.push_back(call->op);
  EXPECT_EQ(ops, (std::vector<std::string>{"Input", "counting", "square", "counting_1", "negate"}));
  const auto later =
      calls_between({}, {out}, [](const SymbolicCall& call) { return call.op == "square"; });
  EXPECT_EQ(later.size(), 2U) << "what is known is not looked behind";
  // A layer's input is handed out with what computes it.
  const Layer* const second = calls[3]->layer->layer;
  const Tensor handed = second->input()[0];
  EXPECT_EQ(handed.symbol()->call->op, "square");
  out = Tensor();
  EXPECT_TRUE(weak.expired());
}

TEST_F(Models, AnInputThatIsHandedOutKeepsItsLayer) {
  auto first = std::make_shared<Counting>();
  const auto second = std::make_shared<Counting>();
  const std::weak_ptr<Counting> weak = first;
  (*second)({(*first)({input()})});
  Tensor handed = second->input()[0];
  EXPECT_TRUE(same_tensor(handed, first->output()[0]));
  first.reset();
  EXPECT_FALSE(weak.expired());
  handed = Tensor();
  EXPECT_TRUE(weak.expired()) << "a node keeps no layer";
}

TEST_F(Models, ValuesFitWhatTheyAreGivenFor) {
  const Tensor in = Input({-1, 3}, DType::kFloat64, "x");
  SymbolicValues values;
  for (const Shape& shape : {Shape{2, 4}, Shape{3}, Shape{2, 3, 1}, Shape{}}) {
    EXPECT_EQ(message_of<ArgumentError>([&] { values.set(in, random_tensor(shape, 1)); }),
              "[x] the value is float64 of shape " + to_string(shape) +
                  ", expected float64 of shape [-1, 3] (-1: any)");
  }
  const Tensor y = random_tensor({0, 3}, 1);
  values.set(in, y);
  EXPECT_TRUE(same_tensor(values.get(in), y));
  EXPECT_TRUE(same_tensor(values.get(x_), x_)) << "a value is its own";
  EXPECT_EQ(values.get(ops::negate(in)).shape(), (Shape{0, 3}));
  EXPECT_TRUE(shapes_fit({2, -1}, {-1, 3}) && shapes_fit({}, {}));
  EXPECT_FALSE(shapes_fit({2, 3}, {3, 3}) || shapes_fit({2}, {2, 1}) || shapes_fit({2, 1}, {2}));
  EXPECT_TRUE(any_symbolic({x_, in}) && any_symbolic(x_, in));
  EXPECT_FALSE(any_symbolic({x_, Tensor()}) || any_symbolic(x_, Tensor()));
}

// A scope that a call opens inside its layer's is a part of that.
TEST_F(Models, WhatACallMakesInAScopeOfItsOwnIsItsLayers) {
  const auto layer = std::make_shared<Counting>("maker");
  const ReplayFunction call = [](const std::vector<Tensor>& in, const Replay&) {
    const VariableScope inner("part");
    const Variable w = get_variable("made", {2}, {.dtype = DType::kFloat64});
    return std::vector{ops::multiply(in[0], w.read())};
  };
  layer->call_as({x_}, call);
  layer->call_as({x_}, call);
  EXPECT_EQ(names_of(layer->weights()), (std::vector<std::string>{"maker/part/made"}));
  EXPECT_EQ(graph_.variables().size(), 1U);
}

// Calls of a layer inside its own call are no nodes, and name the layer that computes them.
TEST_F(Models, PartsOfACallAreNoNodes) {
  const auto layer = std::make_shared<Counting>();
  const Tensor in = input();
  layer->call_as({in}, call_with_a_loss(*layer));
  ASSERT_EQ(layer->inbound_nodes().size(), 1U);
  ASSERT_EQ(layer->losses().size(), 1U);
  const auto calls = calls_between({}, {layer->losses()[0]});
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[1]->op, "counting");
  EXPECT_EQ(calls[1]->layer, nullptr);
  ASSERT_TRUE(calls[1]->computed_by);
  EXPECT_EQ(calls[1]->computed_by->layer, layer.get());
  EXPECT_EQ(layer->inbound_nodes()[0]->layer->layer, layer.get());
  // Recorded again they are as they were.
  const auto copy = std::make_shared<Counting>("copy");
  copy->build({2});
  copy->record_again(*calls[1]);
  EXPECT_TRUE(copy->inbound_nodes().empty());
  copy->record_again(*layer->inbound_nodes()[0]);
  EXPECT_EQ(copy->inbound_nodes().size(), 1U);
}

TEST_F(Models, LossesAreAddedAsTheyWere) {
  const auto layer = std::make_shared<Counting>();
  const Tensor in = input();
  Model model({in}, layer->call_as({in}, call_with_a_loss(*layer)));
  std::vector<Model::SymbolicLoss> losses = model.recorded_losses();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_TRUE(losses[0].by_call);
  for (const bool by_call : {true, false}) {
    const auto target = std::make_shared<Counting>();
    losses[0].layer = target;
    losses[0].by_call = by_call;
    Model::add_losses(losses);
    EXPECT_EQ(target->losses().size(), 1U);
    EXPECT_EQ(target->has_call_losses(), by_call);
  }
}

// A loss that is there whatever the inputs are stays one, and no other becomes one.
TEST_F(Models, AddedLossesDependOnTheInputsTheyDependedOn) {
  const auto layer = std::make_shared<Counting>(), target = std::make_shared<Counting>();
  const Tensor a = input(), b = input();
  const Tensor of_a = (*layer)({a}), of_b = (*layer)({b});
  const std::vector<Tensor> values = {ops::reduce_sum(of_a), ops::reduce_mean(of_b),
                                      ops::reduce_sum(ops::add(of_a, of_b)),
                                      ops::reduce_mean(of_a)};
  const std::vector<std::vector<Tensor>> inputs = {{a}, {b}, {a, b}, {}};
  for (std::size_t i = 0; i < values.size(); ++i) layer->add_loss(values[i], inputs[i]);
  std::vector<Model::SymbolicLoss> losses = Model({a, b}, {of_a, of_b}).recorded_losses();
  ASSERT_EQ(losses.size(), values.size());
  for (Model::SymbolicLoss& loss : losses) loss.layer = target;
  Model::add_losses(losses);
  for (const auto& owner : {layer, target}) {
    const auto found = [&](const std::vector<Tensor>& sources) {
      std::vector<std::size_t> places;
      for (const Tensor& loss : owner->get_losses_for(sources)) {
        const auto same = [&](const Tensor& value) { return same_tensor(value, loss); };
        places.push_back(static_cast<std::size_t>(std::find_if(values.begin(), values.end(), same) -
                                                  values.begin()));
      }
      return places;
    };
    EXPECT_EQ(found({}), (std::vector<std::size_t>{3}));
    EXPECT_EQ(found({a}), (std::vector<std::size_t>{0, 2}));
    EXPECT_EQ(found({b}), (std::vector<std::size_t>{1, 2}));
    EXPECT_EQ(found({a, b}), (std::vector<std::size_t>{0, 1, 2}));
  }
}

TEST_F(Models, ALongChainBehindALayerIsFreedWithoutADeepStack) {
  std::weak_ptr<Counting> weak;
  {
    const auto layer = std::make_shared<Counting>();
    weak = layer;
    Tensor out = (*layer)({input()});
    for (int i = 0; i < 100000; ++i) out = ops::add_scalar(out, 1.0);
  }
  EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace openrnn::testing
