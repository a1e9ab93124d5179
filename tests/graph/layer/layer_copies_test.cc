// What a layer is made of, compared with that of its copy.
#include "graph/layer/support.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

// The tangent of its input; its copies begin with another name, dtype and device.
class Whole : public Layer {
 public:
  explicit Whole(std::string name = "", DType dtype = DType::kFloat64,
                 const Device* device = &cpu_device())
      : Layer(std::move(name), "whole", dtype, device) {}
  using Layer::run_in_scope;
  using Layer::set_reuse;
  Tensor operator()(const Tensor& x) {
    ensure_built(x.shape());
    require_class_build();
    return run_call({x}, {{x.dtype(), x.shape()}})[0];
  }
  std::shared_ptr<Layer> copy() const override {
    auto made = std::make_shared<Whole>("other", DType::kFloat16, &test_device(1));
    made->copy_layer(*this);
    return made;
  }

 protected:
  void do_build(const Shape& shape) override {
    set_input_spec({.ndim = 2, .axes = {{-1, shape.back()}}});
    add_weight("w", {2}, {.dtype = DType::kFloat64, .regularizer = [](const Tensor& w) {
                            return ops::l2_regularization(w, 0.5);
                          }});
    add_weight("fixed", {3}, {.dtype = DType::kFloat64, .trainable = false});
  }
  std::vector<Tensor> compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                   const Replay&) override {
    return {ops::tanh(inputs[0])};
  }
};

/// One line each.
std::vector<std::string> describe(const Layer& layer) {
  const LayerState state = layer.state();
  std::vector<std::string> lines{layer.name(),
                                 state.scope,
                                 state.saveable_scope,
                                 std::string(dtype_name(layer.dtype())),
                                 std::string(layer.device().name()),
                                 to_string(state.input_shape),
                                 std::string("named ") + (state.named ? "yes" : "no"),
                                 std::string("trainable ") + (layer.trainable() ? "yes" : "no"),
                                 std::string("stateful ") + (layer.stateful ? "yes" : "no"),
                                 std::string("built ") + (layer.built() ? "yes" : "no")};
  if (layer.input_spec()) {
    lines.push_back("ndim " + std::to_string(layer.input_spec()->ndim.value_or(0)));
    for (const auto& [axis, size] : layer.input_spec()->axes) {
      lines.push_back("axis " + std::to_string(axis) + " is " + std::to_string(size));
    }
  }
  for (const std::string& name : names_of(layer.weights())) lines.push_back("weight " + name);
  for (const std::string& name : names_of(layer.own_weights())) lines.push_back("own " + name);
  for (const std::string& name : state.weight_names) lines.push_back("inside " + name);
  for (const auto& [place, loss] : state.regularizers) {
    lines.push_back("regularizer of " + std::to_string(place));
  }
  for (const LayerPart& part : layer.parts()) lines.push_back("part " + part.name);
  return lines;
}

class Copies : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

TEST_F(Copies, HaveEachPropertyOfTheirLayer) {
  const auto inner = std::make_shared<Whole>("inner");
  Whole layer;
  {
    const VariableScope outer("outer");
    Whole first;
    first.build({4, 5});
    layer.build({6, 7});
  }
  layer.track("inner", inner);
  layer.stateful = true;
  layer.set_trainable(false);
  const std::vector<std::string> expected{"whole_1",
                                          "outer/whole_1",
                                          "outer",
                                          "float64",
                                          "cpu",
                                          "[6, 7]",
                                          "named no",
                                          "trainable no",
                                          "stateful yes",
                                          "built yes",
                                          "ndim 2",
                                          "axis -1 is 7",
                                          "weight outer/whole_1/w",
                                          "weight outer/whole_1/fixed",
                                          "own outer/whole_1/w",
                                          "own outer/whole_1/fixed",
                                          "inside w",
                                          "inside fixed",
                                          "regularizer of 0",
                                          "part inner"};
  EXPECT_EQ(describe(layer), expected);
  const auto copy = layer.copy();
  EXPECT_EQ(describe(*copy), expected);
  EXPECT_EQ(&copy->graph(), &graph_);
  EXPECT_EQ(copy->sublayers(), layer.sublayers());
  EXPECT_TRUE(copy->weights()[0].same_as(layer.weights()[0]));
  copy->set_trainable(true);
  EXPECT_FALSE(layer.trainable());
}

TEST_F(Copies, OfANamedLayerThatWasNotBuilt) {
  Whole layer("given", DType::kFloat32, &test_device());
  const std::vector<std::string> expected{"given",
                                          "",
                                          "",
                                          "float32",
                                          std::string(test_device().name()),
                                          "[]",
                                          "named yes",
                                          "trainable yes",
                                          "stateful no",
                                          "built no"};
  EXPECT_EQ(describe(layer), expected);
  const auto copy = layer.copy();
  EXPECT_EQ(describe(*copy), expected);
  EXPECT_THROW(copy->graph(), ArgumentError);
  // It is built by itself, under a name of its own.
  layer.build({2, 3});
  copy->build({2, 3});
  EXPECT_EQ(copy->scope_name(), "given_1");
  EXPECT_EQ(copy->name(), "given");
}

TEST_F(Copies, TakeTheNameThatIsReused) {
  Whole first("shared"), second("shared");
  second.set_reuse(true);
  const auto copy = second.copy();
  first.build({2, 3});
  copy->build({2, 3});
  EXPECT_EQ(copy->scope_name(), "shared");
  EXPECT_TRUE(copy->weights()[0].same_as(first.weights()[0]));
}

TEST_F(Copies, HaveTheLossesUpdatesAndNodes) {
  Whole layer, next;
  int runs = 0;
  const Tensor in = Input({-1, 3}, DType::kFloat64);
  const Tensor y = layer(in);
  next(y);
  layer.add_loss([] { return random_tensor({}, 7); });
  layer.add_update([&] { ++runs; });
  layer.add_update([&] { runs += 10; }, {in});
  const auto copy = layer.copy();
  EXPECT_EQ(numbers_of(copy->losses()), numbers_of(layer.losses()));
  EXPECT_EQ(copy->losses().size(), 2U);
  for (const auto& update : copy->updates()) update();
  EXPECT_EQ(runs, 11);
  EXPECT_EQ(copy->get_updates_for({in}).size(), 1U);
  EXPECT_EQ(copy->inbound_nodes(), layer.inbound_nodes());
  EXPECT_EQ(copy->outbound_nodes(), layer.outbound_nodes());
  EXPECT_EQ(copy->outbound_nodes(), next.inbound_nodes());
  EXPECT_TRUE(same_tensor(copy->input()[0], in));
}

// The loss of a call is the copy's own, in the graph as well.
TEST_F(Copies, RegularizeTheirOwnOutputs) {
  Whole layer;
  layer.set_activity_regularizer([](const Tensor& y) { return ops::reduce_sum(y); });
  const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({2, 3}, 2);
  layer(a);
  const auto copy = std::dynamic_pointer_cast<Whole>(layer.copy());
  ASSERT_TRUE(copy->activity_regularizer());
  (*copy)(b);
  const double of_a = ops::reduce_sum(ops::tanh(a)).item();
  const double of_b = ops::reduce_sum(ops::tanh(b)).item();
  const double of_w = ops::l2_regularization(layer.weights()[0].read(), 0.5).item();
  EXPECT_EQ(numbers_of(layer.losses()), (std::vector<double>{of_w, of_a}));
  EXPECT_EQ(numbers_of(copy->losses()), (std::vector<double>{of_w, of_b}));
  EXPECT_EQ(numbers_of(graph_.regularization_losses()), (std::vector<double>{of_w, of_a, of_b}));
}

TEST_F(Copies, FindAgainWhatRanInTheScope) {
  Whole layer;
  layer.build({2, 3});
  const auto run = [](Whole& one) { one.run_in_scope([] { get_variable("made", {4}); }); };
  run(layer);
  run(layer);
  const auto copy = std::dynamic_pointer_cast<Whole>(layer.copy());
  run(*copy);
  EXPECT_EQ(copy->weights().size(), 3U);
  EXPECT_EQ(names_of(copy->weights()), names_of(layer.weights()));
  EXPECT_EQ(graph_.variables().size(), 3U);
}

// An override that is set on it finds the class's build done.
TEST_F(Copies, OfABuiltLayerAreBuilt) {
  Whole layer;
  layer.build({2, 3});
  const auto copy = std::dynamic_pointer_cast<Whole>(layer.copy());
  copy->override_build([](const Shape&) { ADD_FAILURE() << "built again"; });
  EXPECT_EQ((*copy)(random_tensor({2, 3}, 1)).shape(), (Shape{2, 3}));
  const auto fresh = std::dynamic_pointer_cast<Whole>(Whole().copy());
  fresh->override_build([](const Shape&) {});
  EXPECT_THROW((*fresh)(random_tensor({2, 3}, 1)), StateError);
}

}  // namespace
}  // namespace openrnn::testing
