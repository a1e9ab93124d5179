// What layers and symbolic tensors refuse, word for word.
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

// It has nothing of its own.
class Bare : public Layer {
 public:
  explicit Bare(std::string name = "") : Layer(std::move(name), "bare", DType::kFloat32) {}
  std::vector<Tensor> operator()(const Tensor& x) {
    ensure_built(x.shape());
    require_class_build();
    return run_call({x}, {{x.dtype(), x.shape()}});
  }

 protected:
  void do_build(const Shape&) override {}
};

class Refusals : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
  const Tensor x_ = random_tensor({2, 3}, 1, -1.0, 1.0, DType::kFloat32);
};

TEST_F(Refusals, OfALayerThatDoesNothingByItself) {
  Bare layer;
  EXPECT_EQ(message_of<StateError>([&] { layer(x_); }),
            "[bare] its class computes nothing by itself");
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              layer.compute_output_shape({2, 3});
            }),
            "[compute_output_shape] the layer 'bare' does not say what it makes of [2, 3]");
  EXPECT_EQ(message_of<UnsupportedError>([&] { layer.copy(); }),
            "[copy] the layer 'bare' is of a class without copies");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.add_update({}); }),
            "[add_update] update is empty, expected a function");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.add_loss(Tensor()); }),
            "[add_loss] loss is empty, expected a function or a tensor");
  EXPECT_EQ(message_of<ArgumentError>([] { Bare("mine").count_params(); }),
            "[count_params] the layer 'mine' is not built, expected a build or a call before");
  Bare overridden("sub");
  overridden.override_build([](const Shape&) {});
  EXPECT_EQ(message_of<StateError>([&] { overridden(x_); }),
            "[sub] the build() of its class has not run, expected build() of the subclass to call "
            "it");
}

TEST_F(Refusals, OfParts) {
  Bare layer("outer");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.track("p", std::shared_ptr<Layer>()); }),
            "[track] 'p' is null, expected a layer");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.track("p", Variable()); }),
            "[track] 'p' is empty, expected a variable");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.track("", std::make_shared<Bare>()); }),
            "[track] a part of the layer 'outer' has an empty name, expected one");
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.track("p", layer); }),
            "[track] the layer 'outer' is given as its own part, expected another one");
  EXPECT_TRUE(layer.parts().empty());
}

TEST_F(Refusals, OfNodesOfDifferentShapes) {
  const auto layer = std::make_shared<Bare>();
  const ReplayFunction sum = [](const std::vector<Tensor>& in, const Replay&) {
    return std::vector{ops::add_n(in)};
  };
  const Tensor a = Input({2, 3}), b = Input({4, 3});
  layer->call_as({a}, sum);
  EXPECT_EQ(layer->output_shape(), (std::vector<Shape>{{2, 3}}));
  layer->call_as({b}, sum);
  EXPECT_EQ(message_of<NotConnectedError>([&] { layer->output_shape(); }),
            "[output_shape] the layer 'bare' has 2 inbound nodes of different output shapes, "
            "expected one; ask get_output_shape_at(node_index)");
  EXPECT_EQ(layer->get_output_shape_at(1), (std::vector<Shape>{{4, 3}}));
  const std::string rest =
      "] node_index is 2, expected 0 to 1 as the layer 'bare' has 2 inbound nodes";
  using Ask = std::function<void()>;
  for (const auto& [call, ask] :
       {std::pair<std::string, Ask>{"get_input_at", [&] { layer->get_input_at(2); }},
        {"get_input_shape_at", [&] { layer->get_input_shape_at(2); }},
        {"get_output_shape_at", [&] { layer->get_output_shape_at(2); }},
        {"get_input_mask_at", [&] { layer->get_input_mask_at(2); }},
        {"get_output_mask_at", [&] { layer->get_output_mask_at(2); }}}) {
    EXPECT_EQ(message_of<ArgumentError>(ask), "[" + call + rest);
  }
  EXPECT_THROW(layer->get_output_at(-1), ArgumentError);
  Graph other;
  const Graph::AsDefault current(other);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              layer->call_as({Input({2, 3})}, sum);
            }),
            "[bare] an input belongs to another graph, expected that of the layer");
}

TEST_F(Refusals, OfSymbolicTensors) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              Input({2, -2});
            }),
            "[Input] shape is [2, -2], expected dimensions of 0 or more, or -1 for an unknown one");
  const Tensor in = Input({2, 3}, DType::kFloat32, "mine");
  EXPECT_EQ(message_of<StateError>([&] { static_cast<void>(in.value()); }),
            "[value] the tensor is symbolic and has no value, expected a computed one: make a "
            "Model of its inputs and outputs and call that");
  SymbolicValues values(Replay{});
  EXPECT_EQ(message_of<ArgumentError>([&] { values.get(ops::tanh(in)); }),
            "[mine] the Input has no value, expected it among the inputs");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              values.set(in, random_tensor({2, 3}, 1));
            }),
            "[mine] the value is float64 of shape [2, 3], expected float32 of shape [2, 3] (-1: "
            "any)");
}

// A function counts as a tensor does: in the graph's losses as well, once, as the latest call has
// it.
TEST_F(Refusals, AFunctionThatACallAddsIsALossOfTheGraph) {
  const auto layer = std::make_shared<Bare>();
  double next = 1.5;
  const ReplayFunction adds = [&](const std::vector<Tensor>& in, const Replay&) {
    layer->add_loss(
        [value = next] { return ops::add_scalar(random_tensor({}, 1, 0.0, 0.0), value); });
    next *= 2.0;
    return std::vector{ops::tanh(in[0])};
  };
  for (const double expected : {1.5, 3.0, 6.0}) {
    layer->call_as({x_}, adds);
    ASSERT_EQ(layer->losses().size(), 1U);
    EXPECT_EQ(layer->losses()[0].item(), expected);
    ASSERT_EQ(graph_.regularization_losses().size(), 1U);
    EXPECT_EQ(graph_.regularization_losses()[0].item(), expected);
  }
}

// Freezing reaches what a layer was given, in groups as well, before and after.
TEST_F(Refusals, OfTrainingWhatAFrozenLayerHas) {
  Bare layer("outer");
  const auto before = std::make_shared<Bare>("before"), later = std::make_shared<Bare>("later");
  const auto of = [](const char* name) { return Variable(name, random_tensor({2}, 1).to_host()); };
  const Variable one = of("one"), inside = of("inside"), late = of("late");
  layer.track("one", one);
  layer.track("group", std::vector<LayerPart>{{.name = "v", .variable = inside},
                                              Layer::part_of("l", before)});
  EXPECT_EQ(graph_.trainable_variables().size(), 3U);
  layer.set_trainable(false);
  layer.track("rest",
              std::vector<LayerPart>{{.name = "v", .variable = late}, Layer::part_of("l", later)});
  for (const Variable& variable : {one, inside, late}) EXPECT_FALSE(variable.trainable());
  EXPECT_FALSE(before->trainable() || later->trainable());
  EXPECT_TRUE(graph_.trainable_variables().empty());
  layer.set_trainable(true);
  for (const Variable& variable : {one, inside, late}) EXPECT_TRUE(variable.trainable());
  EXPECT_TRUE(before->trainable() && later->trainable());
}

}  // namespace
}  // namespace openrnn::testing
