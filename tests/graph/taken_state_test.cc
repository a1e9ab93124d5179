// Layers that take over the state of another one: their scopes, flags, losses and parts.
#include "graph/one_variable.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

// Two weights, the first one with a loss.
class Scale : public Layer {
 public:
  explicit Scale(std::string name = "") : Layer(std::move(name), "scale", DType::kFloat64) {}

 protected:
  void do_build(const Shape& shape) override {
    add_weight("weight", shape, {.dtype = dtype(), .regularizer = [](const Tensor& weight) {
                                   return ops::reduce_sum(weight);
                                 }});
    add_weight("offset", shape, {.dtype = dtype()});
  }
};

// Its weights are those of the state, whatever they are.
class Kept : public Layer {
 public:
  Kept() : Layer("", "kept", DType::kFloat64) {}

 protected:
  bool builds_again() const override { return false; }
  void do_build(const Shape&) override { ADD_FAILURE() << "built again"; }
};

class Outer : public Layer {
 public:
  Outer() : Layer("", "outer", DType::kFloat64) { track("inner", inner); }
  Scale inner;

 protected:
  void do_build(const Shape&) override {}
};

class TakenState : public ::testing::Test {
 protected:
  static Variable variable(const std::string& name, std::uint64_t seed = 1) {
    return {name, random_tensor({3}, seed).to_host()};
  }
  /// Of a Scale, with weights that have other names so far.
  static LayerState state_of(const std::string& scope) {
    return {.name = scope,
            .built = true,
            .scope = scope,
            .saveable_scope = "around",
            .input_shape = {3},
            .weights = {variable("copies/" + scope + "/a"), variable("copies/" + scope + "/b")},
            .weight_names = {"weight", "offset"}};
  }

  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

// 'scale_1' has its number from being the second one; of a name that was given it is a part.
TEST_F(TakenState, ATakenScopeIsNumberedAnew) {
  Scale first, second, given("enc_1"), odd("_3");
  for (Scale* const each : {&first, &second, &given, &odd}) each->build({3});
  Scale made, named, short_name;
  made.take_over(state_of("scale_1"));
  EXPECT_EQ(made.scope_name(), "scale_2");
  EXPECT_EQ(made.name(), "scale_2");
  EXPECT_EQ(made.weights()[0].name(), "scale_2/weight");
  LayerState state = state_of("enc_1");
  state.named = true;
  named.take_over(state);
  EXPECT_EQ(named.scope_name(), "enc_1_1");
  EXPECT_EQ(named.name(), "enc_1");
  short_name.take_over(state_of("_3"));
  EXPECT_EQ(short_name.scope_name(), "_3_1");
  Scale no_number, first_plain("part1");
  first_plain.build({3});
  no_number.take_over(state_of("part1"));
  EXPECT_EQ(no_number.scope_name(), "part1_1") << "a digit alone is a part of the name";
}

TEST_F(TakenState, ItsSaveablesGoWhereItsScopeGoes) {
  Scale stays, goes;
  stays.take_over(state_of("scale"));
  EXPECT_EQ(stays.scope_name(), "scale");
  EXPECT_EQ(stays.state().saveable_scope, "around");
  EXPECT_EQ(stays.state().input_shape, (Shape{3})) << "of the build";
  goes.take_over(state_of("scale"));
  EXPECT_EQ(goes.scope_name(), "scale_1");
  EXPECT_EQ(goes.state().saveable_scope, "scale_1");
}

TEST_F(TakenState, FlagsAreTakenBeforeThereIsAScope) {
  Scale layer;
  layer.take_over({.name = "mine", .named = true, .trainable = false, .stateful = true});
  EXPECT_EQ(layer.name(), "mine");
  EXPECT_FALSE(layer.trainable());
  EXPECT_TRUE(layer.stateful);
  EXPECT_FALSE(layer.built());
  EXPECT_THROW(layer.scope_name(), ArgumentError);
  layer.build({3});
  EXPECT_EQ(layer.weights()[0].name(), "mine/weight");
  EXPECT_TRUE(layer.trainable_weights().empty());
}

TEST_F(TakenState, AStateSaysWhichWeightHasALoss) {
  Scale layer;
  layer.build({3});
  const LayerState state = layer.state();
  ASSERT_EQ(state.regularizers.size(), 1u);
  EXPECT_EQ(state.regularizers[0].first, 0u);
  EXPECT_EQ(state.input_shape, (Shape{3}));
  EXPECT_TRUE(state.built);
}

// What a class does not make again is taken from the state as it is.
TEST_F(TakenState, WithoutABuildWeightsAndTheirLossesAreThoseOfTheState) {
  LayerState state = state_of("kept");
  state.regularizers.emplace_back(
      1, [](const Tensor& weight) { return ops::scale(ops::reduce_sum(weight), 2.0); });
  Kept layer;
  layer.take_over(state);
  EXPECT_TRUE(layer.built());
  EXPECT_EQ(layer.count_params(), 6);
  ASSERT_EQ(layer.weights().size(), 2u);
  EXPECT_TRUE(layer.weights()[0].same_as(state.weights[0]));
  EXPECT_EQ(layer.weights()[1].name(), "kept/offset");
  const double expected = 2.0 * ops::reduce_sum(state.weights[1].read()).item();
  ASSERT_EQ(layer.losses().size(), 1u);
  EXPECT_EQ(layer.losses()[0].item(), expected);
  ASSERT_EQ(graph_.regularization_losses().size(), 1u);
  EXPECT_EQ(graph_.regularization_losses()[0].item(), expected);
  layer.set_trainable(false);
  EXPECT_FALSE(state.weights[0].trainable());
  EXPECT_TRUE(graph_.trainable_variables().empty());
}

// Another one has the scope, so a layer and what lies inside it move together.
TEST_F(TakenState, PartsMoveWithTheLayerThatTheyLieIn) {
  const Variable other = variable("outer/other");
  Outer outer;
  outer.inner.take_over(state_of("outer/scale"));
  EXPECT_EQ(outer.inner.scope_name(), "outer/scale");
  Scale late, apart;
  late.take_over(state_of("outer/scale_1"));
  apart.take_over(state_of("elsewhere"));
  outer.track("apart", apart);
  outer.take_over({.name = "outer", .built = true, .scope = "outer"});
  EXPECT_EQ(outer.scope_name(), "outer_1");
  EXPECT_EQ(outer.inner.scope_name(), "outer_1/scale");
  EXPECT_EQ(outer.inner.name(), "scale");
  EXPECT_EQ(outer.inner.weights()[0].name(), "outer_1/scale/weight");
  EXPECT_EQ(outer.inner.weights()[1].name(), "outer_1/scale/offset");
  EXPECT_EQ(apart.scope_name(), "elsewhere");
  EXPECT_EQ(late.scope_name(), "outer/scale_1");
  outer.track("late", late);
  EXPECT_EQ(late.scope_name(), "outer_1/scale_1");
  EXPECT_EQ(late.weights()[0].name(), "outer_1/scale_1/weight");
  EXPECT_EQ(other.name(), "outer/other");
  // The names that they had are free, those that they have are not.
  for (const char* const scope : {"outer", "outer_1"}) {
    const VariableScope inside(scope);
    Scale next;
    next.build({3});
    EXPECT_EQ(next.scope_name(), scope == std::string("outer") ? "outer/scale" : "outer_1/scale_2");
  }
}

// A part whose weights are stored under their names keeps its scope when the layer around it moves.
TEST_F(TakenState, APartStaysWhereItsWeightsAreStored) {
  const Variable other = variable("outer/other");
  Outer outer;
  Scale free;
  outer.inner.take_over(state_of("outer/scale"));
  free.take_over(state_of("outer/scale_2"));
  outer.track("free", free);
  const std::shared_ptr<SaveableObject> saveable =
      std::make_shared<OneVariable>(outer.inner.weights()[1]);
  graph_.add_saveable(saveable);
  outer.take_over({.name = "outer", .built = true, .scope = "outer"});
  EXPECT_EQ(outer.scope_name(), "outer_1");
  EXPECT_EQ(outer.inner.scope_name(), "outer/scale");
  EXPECT_EQ(outer.inner.weights()[0].name(), "outer/scale/weight");
  EXPECT_EQ(free.scope_name(), "outer_1/scale_2");
  EXPECT_EQ(free.weights()[1].name(), "outer_1/scale_2/offset");
}

}  // namespace
}  // namespace openrnn::testing
