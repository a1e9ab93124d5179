#include "graph/scope_stack.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

// A layer with two weights; the second cannot be trained.
class Scale : public Layer {
 public:
  explicit Scale(std::string name = "") : Layer(std::move(name), "scale", DType::kFloat64) {}
  Tensor operator()(const Tensor& x) {
    ensure_built(x.shape());
    return ops::add(ops::multiply(x, weight_.read()), offset_.read());
  }
  using Layer::saveable_scope;

 protected:
  void do_build(const Shape& input_shape) override {
    weight_ = add_weight("weight", input_shape,
                         {.dtype = dtype(), .regularizer = [](const Tensor& weight) {
                            return ops::l2_regularization(weight, 0.5);
                          }});
    offset_ = add_weight(
        "offset", input_shape,
        {.dtype = dtype(), .initializer = constant_initializer(2.0), .trainable = false});
  }

 private:
  Variable weight_, offset_;
};

LayerState state_of_scale(std::vector<Variable> weights) {
  return {.name = "scale",
          .built = true,
          .scope = "scale",
          .input_shape = {3},
          .weights = std::move(weights),
          .weight_names = {"weight", "offset"}};
}

class LayerTest : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

TEST_F(LayerTest, DefaultNamesAreMadeUnique) {
  Scale first, second, named("enc");
  EXPECT_EQ(first.name(), "scale");
  EXPECT_EQ(message_of<ArgumentError>([&] { first.scope_name(); }),
            "[scope_name] the layer 'scale' has no scope yet, expected a build or a call before");
  first.build({3});
  second.build({3});
  named.build({3});
  EXPECT_EQ(first.scope_name(), "scale");
  EXPECT_EQ(second.scope_name(), "scale_1");
  EXPECT_EQ(second.name(), "scale_1");
  EXPECT_EQ(named.weights()[0].name(), "enc/weight");
  Scale again("enc");
  again.build({3});
  EXPECT_EQ(again.scope_name(), "enc_1");
  EXPECT_EQ(again.name(), "enc");
}

TEST_F(LayerTest, ScopesOfExplicitAndImplicitBuilds) {
  const VariableScope scope("m1");
  Scale explicit_build, implicit_build;
  explicit_build.build({3});
  implicit_build(random_tensor({3}, 1));
  EXPECT_EQ(explicit_build.weights()[0].name(), "m1/scale/weight");
  EXPECT_EQ(explicit_build.saveable_scope(), "m1");
  EXPECT_EQ(implicit_build.weights()[0].name(), "m1/scale_1/weight");
  EXPECT_EQ(implicit_build.saveable_scope(), "m1/scale_1");
}

TEST_F(LayerTest, ALaterCallReusesItsVariablesFromAnyScope) {
  Scale layer;
  layer(random_tensor({3}, 1));
  const VariableScope elsewhere("elsewhere");
  layer(random_tensor({3}, 2));
  layer.build({3});
  EXPECT_EQ(graph_.variables().size(), 2u);
  EXPECT_EQ(layer.scope_name(), "scale");
}

TEST_F(LayerTest, ReuseSharesTheVariablesOfAnotherLayer) {
  Scale first, second;
  {
    const VariableScope scope("m");
    first.build({3});
  }
  const VariableScope scope("m", true);
  second.build({3});
  EXPECT_TRUE(second.weights()[0].same_as(first.weights()[0]));
  EXPECT_EQ(graph_.variables().size(), 2u);
}

// What an open layer's call makes or takes is its own, once.
TEST_F(LayerTest, VariablesThatACallTakesAreItsWeights) {
  Variable made;
  {
    const VariableScope scope("m");
    made = get_variable("w", {2});
  }
  for (const bool inner : {false, true}) {
    std::vector<Variable> weights;
    const graph::ReopenedScope scope("m", true, &weights);
    std::optional<VariableScope> between;
    if (inner) between.emplace("n");
    if (inner) {
      EXPECT_THROW(get_variable("w", {2}), ArgumentError);
      EXPECT_TRUE(weights.empty());
      continue;
    }
    get_variable("w", {2});
    get_variable("w", {2});
    ASSERT_EQ(weights.size(), 1u);
    EXPECT_TRUE(weights[0].same_as(made));
  }
  // Of its own variables the layer needs no reuse.
  std::vector<Variable> weights{made};
  const graph::ReopenedScope scope("m", false, &weights);
  EXPECT_TRUE(get_variable("w", {2}).same_as(made));
  get_variable("v", {2});
  EXPECT_EQ(weights.size(), 2u);
}

TEST_F(LayerTest, WeightsAndTheirValues) {
  Scale layer;
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.count_params(); }),
            "[count_params] the layer 'scale' is not built, expected a build or a call before");
  layer.build({2, 3});
  EXPECT_EQ(layer.count_params(), 12);
  EXPECT_EQ(layer.trainable_weights().size(), 1u);
  EXPECT_EQ(layer.non_trainable_weights().size(), 1u);
  layer.set_trainable(false);
  EXPECT_EQ(layer.trainable_weights().size(), 0u);
  EXPECT_EQ(layer.weights().size(), 2u);
  layer.set_trainable(true);
  std::vector<Array> values = layer.get_weights();
  EXPECT_EQ(values[1].as<double>()[5], 2.0);
  values[0].as<double>()[4] = 17.0;
  layer.set_weights(values);
  EXPECT_EQ(layer.get_weights()[0].as<double>()[4], 17.0);
}

TEST_F(LayerTest, AWeightOfAnExistingNameIsReturned) {
  Scale layer;
  layer.build({3});
  const std::vector<Variable> before = layer.weights();
  const VariableOptions options{.dtype = DType::kFloat64};
  EXPECT_TRUE(layer.add_weight("weight", {3}, options).same_as(before[0]));
  EXPECT_EQ(layer.weights().size(), 2u);
  EXPECT_EQ(layer.losses().size(), 1u);
  EXPECT_THROW(layer.add_weight("weight", {4}, options), ArgumentError);
  EXPECT_THROW(layer.add_weight("weight", {3}, {}), ArgumentError);
}

TEST_F(LayerTest, AnOverridingBuildMayCallTheClasss) {
  Scale layer, empty("empty");
  layer.override_build([&](const Shape& shape) {
    EXPECT_TRUE(layer.building());
    layer.build(shape);
    layer.add_weight("more", {1}, {.dtype = DType::kFloat64});
  });
  layer.build({3});
  EXPECT_FALSE(layer.building());
  EXPECT_EQ(layer.weights()[1].name(), "scale/more");
  EXPECT_EQ(layer.weights().size(), 3u);
  empty.override_build([](const Shape&) { throw StateError("mine"); });
  EXPECT_THROW(empty.build({3}), StateError);
  EXPECT_FALSE(empty.built() || empty.building());
}

TEST_F(LayerTest, ACallInPlaceOfTheClasssIsOneNode) {
  auto layer = std::make_shared<Scale>();
  layer->set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
  const ReplayFunction twice = [&](const std::vector<Tensor>& given, const Replay&) {
    const Tensor y = (*layer)(given[0]);
    return std::vector{ops::add(y, y)};
  };
  const Tensor x = Input({3}, DType::kFloat64);
  const Tensor y = layer->call_as({x}, twice)[0];
  EXPECT_EQ(layer->inbound_nodes().size(), 1u);
  EXPECT_EQ(layer->losses().size(), 2u);  // the weight's, and one of the call
  Model model({x}, {y});
  const Tensor values = random_tensor({3}, 1);
  const Tensor once = (*layer)(values);
  EXPECT_EQ(values_of(model({values})[0]), values_of(ops::add(once, once)));
  EXPECT_EQ(message_of<ArgumentError>([&] {
              layer->call_as({x}, [](const auto&, const Replay&) { return std::vector<Tensor>{}; });
            }),
            "[scale] call() returned no tensor, expected at least one");
}

// What a model's run added is forgotten by the next call, and all is as before that run.
TEST_F(LayerTest, ACallOfValuesEndsWhatAReplayAdded) {
  auto layer = std::make_shared<Scale>();
  const ReplayFunction call = [&](const std::vector<Tensor>& given, const Replay&) {
    const Tensor y = (*layer)(given[0]);
    layer->add_loss(ops::reduce_sum(y));
    layer->add_update([] {});
    return std::vector{y};
  };
  const Tensor in = Input({3}, DType::kFloat64), x = random_tensor({3}, 1);
  Model model({in}, layer->call_as({in}, call));
  const auto kinds = [&] {
    std::vector<bool> symbolic;
    for (const Tensor& loss : layer->losses()) symbolic.push_back(loss.is_symbolic());
    return std::pair(symbolic, layer->updates().size());
  };
  layer->call_as({x}, call);
  const auto before = kinds();
  EXPECT_EQ(before.first, (std::vector<bool>{false, true, false}))
      << "the weight's, and two calls'";
  model({x});
  // The run's in place of the recorded one.
  EXPECT_EQ(kinds(), std::pair(std::vector<bool>(3, false), before.second));
  layer->call_as({x}, call);
  EXPECT_EQ(kinds(), before);
}

TEST_F(LayerTest, SetWeightsChangesNothingWhenOneIsWrong) {
  Scale layer;
  layer.build({3});
  std::vector<Array> values = layer.get_weights();
  const Array before = values[0];
  values[0].as<double>()[0] += 1;
  values[1] = Array(DType::kFloat64, {4});
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.set_weights(values); }),
            "[set_weights] values[1] is float64 of shape [4], expected float64 of shape [3] as "
            "'scale/offset'");
  EXPECT_EQ(layer.get_weights()[0].as<double>()[0], before.as<double>()[0]);
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.set_weights({}); }),
            "[set_weights] 0 arrays, expected 2 for the layer 'scale'");
}

TEST_F(LayerTest, LossesAndUpdates) {
  Scale layer;
  layer.build({3});
  layer.add_loss([] { return random_tensor({}, 1); });
  EXPECT_EQ(&layer.graph(), &graph_);
  ASSERT_EQ(layer.losses().size(), 2u);
  EXPECT_EQ(layer.losses()[0].item(),
            ops::l2_regularization(layer.weights()[0].read(), 0.5).item());
  EXPECT_EQ(graph_.regularization_losses().size(), 2u);
  int runs = 0;
  layer.add_update([&] { ++runs; });
  for (const auto& update : layer.updates()) update();
  EXPECT_EQ(runs, 1);
  layer.set_trainable(false);
  EXPECT_TRUE(layer.updates().empty());
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.add_loss(std::function<Tensor()>()); }),
            "[add_loss] loss is empty, expected a function or a tensor");
  EXPECT_EQ(message_of<ArgumentError>([] { Scale().graph(); }),
            "[graph] the layer 'scale' has no graph yet, expected a build or a call before");
}

TEST_F(LayerTest, AGraphThatIsGoneIsNotHandedOut) {
  Scale layer;
  {
    Graph shorter;
    const Graph::AsDefault current(shorter);
    layer.build({3});
    EXPECT_EQ(&layer.graph(), &shorter);
  }
  const Graph another;  // may lie where the first did
  EXPECT_EQ(message_of<StateError>([&] { layer.graph(); }),
            "[graph] the graph of the layer 'scale' is gone, expected it to outlive the layer");
  EXPECT_EQ(layer.weights().size(), 2u);
}

TEST_F(LayerTest, GradientsReachItsVariables) {
  Scale layer;
  GradientTape tape;
  const Tensor x = random_tensor({3}, 1);
  const Tensor y = ops::reduce_sum(layer(x));
  const auto gradients = tape.gradient(y, layer.weights());
  EXPECT_EQ(values_of(gradients[0]), values_of(x));
  EXPECT_TRUE(gradients[1].empty());
}

// Two scales, one of them in a group.
class Pair : public Layer {
 public:
  Pair() : Layer("", "pair", DType::kFloat64) {
    track("first", first);
    track("others", std::vector{second});
  }
  Tensor operator()(const Tensor& x) {
    ensure_built(x.shape());
    return (*second)(first(x));
  }
  Scale first;
  std::shared_ptr<Scale> second = std::make_shared<Scale>();

 protected:
  void do_build(const Shape&) override {}
};

TEST_F(LayerTest, PartsBelongToTheLayer) {
  Pair pair;
  pair(random_tensor({3}, 1));
  EXPECT_EQ(pair.trainable_weights().size(), 2u);
  EXPECT_EQ(pair.weights().size(), 4u);
  EXPECT_EQ(pair.count_params(), 12);
  EXPECT_EQ(pair.losses().size(), 2u);
  EXPECT_EQ(pair.get_losses_for({}).size(), 2u);
  pair.second->add_update([] {});
  EXPECT_EQ(pair.updates().size(), 1u);
  EXPECT_EQ(pair.sublayers(), (std::vector<Layer*>{&pair.first, pair.second.get()}));
  pair.add_update([] {});
  pair.second->track("back", pair);  // a circle
  EXPECT_EQ(pair.weights().size(), 4u);
  EXPECT_EQ(pair.updates().size(), 2u);
  EXPECT_EQ(pair.get_updates_for({}).size(), 2u);
  EXPECT_EQ(pair.get_losses_for({}).size(), 2u);
  EXPECT_EQ(message_of<ArgumentError>([&] { pair.track("self", pair); }),
            "[track] the layer 'pair' is given as its own part, expected another one");
  EXPECT_EQ(message_of<ArgumentError>([&] { pair.track("", pair.first); }),
            "[track] a part of the layer 'pair' has an empty name, expected one");
}

TEST_F(LayerTest, APartOfAKnownNameTakesItsPlace) {
  Pair pair;
  const auto next = std::make_shared<Scale>(), last = std::make_shared<Scale>();
  pair.track("first", next);
  EXPECT_EQ(pair.sublayers(), (std::vector<Layer*>{pair.second.get(), next.get()}));
  pair.track("others", std::vector{last, next});
  EXPECT_EQ(pair.sublayers(), (std::vector<Layer*>{next.get(), last.get(), next.get()}));
  const Variable variable("v", Array(DType::kFloat64, {2}));
  pair.track("others", variable);
  EXPECT_EQ(pair.sublayers(), (std::vector<Layer*>{next.get()}));
  EXPECT_EQ(pair.parts().size(), 2u);
  next->build({3});
  EXPECT_EQ(pair.weights().size(), 3u);
}

TEST_F(LayerTest, FreezingReachesGraphsModelsAndTapes) {
  Pair pair;
  const Tensor x = random_tensor({3}, 1);
  pair(x);
  EXPECT_EQ(graph_.trainable_variables().size(), 2u);
  pair.first.set_trainable(false);
  EXPECT_EQ(graph_.trainable_variables().size(), 1u);
  EXPECT_EQ(pair.trainable_weights().size(), 1u);
  EXPECT_EQ(pair.non_trainable_weights().size(), 3u);
  GradientTape tape;
  const Tensor loss = ops::reduce_sum(pair(x));
  tape.close();
  const auto gradients =
      tape.gradient(loss, {pair.first.own_weights()[0], pair.second->own_weights()[0]});
  EXPECT_TRUE(gradients[0].empty());
  EXPECT_FALSE(gradients[1].empty());
  pair.set_trainable(false);
  EXPECT_TRUE(graph_.trainable_variables().empty());
  EXPECT_FALSE(pair.second->trainable());
  pair.track("late", std::make_shared<Scale>());
  EXPECT_FALSE(pair.sublayers()[2]->trainable());
  pair.set_trainable(true);
  EXPECT_EQ(graph_.trainable_variables().size(), 2u);
}

// A variable is trained as the layer that made it says, whatever else it is a part of.
TEST_F(LayerTest, AVariableBelongsToTheLayerThatMadeIt) {
  Scale maker, other("other");
  maker.build({3});
  const Variable weight = maker.weights()[0];
  other.track("shared", weight);
  other.set_trainable(false);
  EXPECT_TRUE(weight.trainable());
  EXPECT_EQ(graph_.trainable_variables().size(), 1u);
  maker.set_trainable(false);
  EXPECT_FALSE(weight.trainable());
  other.set_trainable(true);
  EXPECT_FALSE(weight.trainable());
  maker.set_trainable(true);
  EXPECT_TRUE(weight.trainable());
}

TEST_F(LayerTest, AFrozenBuildCanBeTrainedLater) {
  Scale layer;
  layer.set_trainable(false);
  layer.build({3});
  EXPECT_TRUE(graph_.trainable_variables().empty());
  layer.set_trainable(true);
  EXPECT_EQ(graph_.trainable_variables().size(), 1u);
}

TEST_F(LayerTest, ModelsSeeWhatIsFrozen) {
  const auto first = std::make_shared<Scale>(), second = std::make_shared<Scale>();
  first->build({3});
  second->build({3});
  Pair outer;
  outer.track("first", first);
  outer.set_trainable(false);
  EXPECT_TRUE(first->trainable_weights().empty());
  EXPECT_EQ(graph_.trainable_variables().size(), 1u);
}

TEST_F(LayerTest, AStateIsTakenOverUnderANewScope) {
  Scale layer;
  layer.build({3});
  layer.set_trainable(false);
  LayerState state = layer.state();
  EXPECT_EQ(state.weight_names, (std::vector<std::string>{"weight", "offset"}));
  for (Variable& weight : state.weights) {
    weight = Variable(weight.name() + "_copy", weight.to_host(), weight.made_trainable());
  }
  Scale made;
  made.take_over(state);
  EXPECT_EQ(made.scope_name(), "scale_1");
  EXPECT_EQ(made.weights()[0].name(), "scale_1/weight");
  EXPECT_FALSE(made.trainable());
  EXPECT_EQ(made.losses().size(), 1u);
  Graph other;
  const Graph::AsDefault current(other);
  for (Variable& weight : state.weights) weight = Variable(weight.name(), weight.to_host());
  Scale again;
  again.take_over(state_of_scale(state.weights));
  EXPECT_EQ(again.weights()[0].name(), "scale/weight");
  EXPECT_TRUE(other.has_variable("scale/offset"));
  EXPECT_FALSE(other.has_variable("scale_1/offset"));
}

// Slots of its own weights take no scope from a layer; what another made there does.
TEST_F(LayerTest, AStateKeepsItsScopeBesideSlotsOfItsOwn) {
  for (const bool foreign : {false, true}) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const auto variable = [](const std::string& name, const Shape& shape = {3}) {
      return Variable(name, Array(DType::kFloat64, shape));
    };
    const Variable weight = variable("scale/weight"), offset = variable("scale/offset"),
                   slot = variable("scale/weight/Momentum"),
                   step = variable(foreign ? "scale/weight_2" : "scaled/weight", {});
    Scale layer;
    layer.take_over(state_of_scale({weight, offset}));
    EXPECT_EQ(layer.scope_name(), foreign ? "scale_1" : "scale");
    EXPECT_EQ(weight.name(), foreign ? "scale_1/weight" : "scale/weight");
    EXPECT_EQ(layer.name(), layer.scope_name());
    Scale next;
    next.build({3});
    EXPECT_EQ(next.scope_name(), foreign ? "scale" : "scale_1");
  }
}

TEST_F(LayerTest, AStateOfOtherWeightsIsRefused) {
  for (const auto& [dtype, shape] :
       {std::pair(DType::kFloat32, Shape{3}), std::pair(DType::kFloat64, Shape{4})}) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable weight("scale/weight", Array(dtype, shape)),
        offset("scale/offset", Array(DType::kFloat64, {3}));
    Scale layer;
    EXPECT_EQ(message_of<ArgumentError>([&] {
                layer.take_over(state_of_scale({weight, offset}));
              }),
              "[take_over] 'scale/weight' is " + std::string(dtype_name(dtype)) + " of shape " +
                  to_string(shape) + ", expected float64 of shape [3]");
  }
}

// A layer whose weight stays above 0.
class Bounded : public Layer {
 public:
  Bounded() : Layer("", "bounded", DType::kFloat64) {}

 protected:
  void do_build(const Shape& shape) override {
    add_weight("weight", shape, {.dtype = dtype(), .constraint = [](const Tensor& weight) {
                                   return ops::relu(weight);
                                 }});
  }
};

TEST_F(LayerTest, AStateThatIsTakenOverHasItsConstraints) {
  Bounded layer, made;
  layer.build({2});
  LayerState state = layer.state();
  state.weights[0] = Variable("copy", state.weights[0].to_host());
  ASSERT_FALSE(state.weights[0].constraint());
  made.take_over(state);
  const Variable weight = made.weights()[0];
  ASSERT_TRUE(weight.constraint());
  EXPECT_EQ(values_of(weight.constraint()(ops::full_like(weight.read(), -2.0))),
            (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace openrnn::testing
