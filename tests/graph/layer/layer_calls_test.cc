// Calls of layers: where their variables go, and what becomes of losses, updates and outputs.
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

// Gives the tangent and the exponential of its first input; a call adds a loss and an update.
class Two : public Layer {
 public:
  explicit Two(std::string name = "", const Device* device = nullptr)
      : Layer(std::move(name), "two", DType::kFloat64, device) {}
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const std::string& scope = "") {
    ensure_built(inputs[0].shape(), scope);
    const TensorSpec spec{inputs[0].dtype(), inputs[0].shape()};
    return run_call(inputs, {spec, spec});
  }
  bool adds = false;
  int runs = 0;

 protected:
  void do_build(const Shape&) override { add_weight("w", {2}, {.dtype = DType::kFloat64}); }
  std::vector<Tensor> compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                   const Replay&) override {
    if (adds) {
      add_loss(ops::reduce_sum(inputs[0]));
      add_update([this] { ++runs; });
    }
    return {ops::tanh(inputs[0]), ops::exp(inputs[0])};
  }
};

class Calls : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
  const Tensor x_ = random_tensor({2}, 1);
};

TEST_F(Calls, ADefaultNameIsTheLastPartOfItsScope) {
  for (const std::string& around : std::vector<std::string>{"a", "a/b", "a/b/c"}) {
    const VariableScope scope(around);
    Two first, second;
    first({x_});
    second.build({2});
    EXPECT_EQ(first.scope_name(), around + "/two");
    EXPECT_EQ(first.name(), "two");
    EXPECT_EQ(second.scope_name(), around + "/two_1");
    EXPECT_EQ(second.name(), "two_1");
  }
}

TEST_F(Calls, AScopeThatIsNamedLiesInTheOneAround) {
  const ReplayFunction same = [](const std::vector<Tensor>& in, const Replay&) { return in; };
  for (const std::string& around : std::vector<std::string>{"", "m", "m/n"}) {
    const std::string prefix = around.empty() ? "" : around + "/";
    std::optional<VariableScope> scope;
    if (!around.empty()) scope.emplace(around);
    const auto called = std::make_shared<Two>(), replaced = std::make_shared<Two>();
    (*called)({x_}, "here/x");
    replaced->call_as({x_}, same, "there/y");
    EXPECT_EQ(called->scope_name(), prefix + "here/x");
    EXPECT_EQ(called->weights()[0].name(), prefix + "here/x/w");
    EXPECT_EQ(called->name(), "x");
    EXPECT_EQ(replaced->scope_name(), prefix + "there/y");
    EXPECT_EQ(replaced->weights()[0].name(), prefix + "there/y/w");
    EXPECT_EQ(replaced->name(), "y");
    (*called)({x_}, "elsewhere");
    EXPECT_EQ(called->scope_name(), prefix + "here/x") << "it has one already";
    // A name that was given stays.
    Two named("mine");
    named({x_}, "third");
    EXPECT_EQ(named.name(), "mine");
    EXPECT_EQ(named.scope_name(), prefix + "third");
  }
}

TEST_F(Calls, AWeightLiesOnTheDeviceThatIsAskedFor) {
  for (const Device* const own : {&cpu_device(), &test_device(0)}) {
    Two layer("", own);
    layer.build({2});
    EXPECT_EQ(&layer.weights()[0].device(), own);
    const VariableOptions there{.dtype = DType::kFloat64, .device = &test_device(1)};
    EXPECT_EQ(&layer.add_weight("there", {2}, there).device(), &test_device(1));
    EXPECT_EQ(&layer.add_weight("there", {2}, there).device(), &test_device(1));
    EXPECT_EQ(message_of<ArgumentError>(
                  [&] { layer.add_weight("there", {2}, {.dtype = DType::kFloat64}); }),
              "[get_variable] '" + layer.scope_name() + "/there' is asked for on " +
                  std::string(own->name()) + ", expected " + std::string(test_device(1).name()) +
                  ", where it exists");
  }
}

// Of each call what it added itself, however many there were before.
TEST_F(Calls, WhatACallOfValuesAddsEndsWithTheNext) {
  const auto layer = std::make_shared<Two>();
  layer->adds = true;
  for (const std::uint64_t seed : {2, 3, 4}) {
    const Tensor x = random_tensor({2}, seed);
    (*layer)({x});
    ASSERT_EQ(layer->losses().size(), 1U);
    EXPECT_EQ(layer->losses()[0].item(), ops::reduce_sum(x).item());
    EXPECT_TRUE(layer->has_call_losses());
    ASSERT_EQ(graph_.regularization_losses().size(), 1U);
    EXPECT_EQ(graph_.regularization_losses()[0].item(), ops::reduce_sum(x).item());
    EXPECT_EQ(layer->updates().size(), 1U);
    EXPECT_EQ(layer->get_updates_for({}).size(), 1U);
  }
  for (const auto& update : layer->updates()) update();
  EXPECT_EQ(layer->runs, 1);
  layer->adds = false;
  (*layer)({x_});
  EXPECT_TRUE(layer->losses().empty());
  EXPECT_TRUE(layer->updates().empty());
  EXPECT_TRUE(graph_.regularization_losses().empty());
  EXPECT_FALSE(layer->has_call_losses());
}

TEST_F(Calls, WhatAReplayAddsTakesThePlaceOfThatOfTheLast) {
  const auto layer = std::make_shared<Two>();
  layer->adds = true;
  const Tensor in = Input({2}, DType::kFloat64);
  Model model({in}, {(*layer)({in})[0]});
  EXPECT_TRUE(layer->losses().empty()) << "a recorded call adds nothing by itself";
  for (const std::uint64_t seed : {2, 3}) {
    const Tensor x = random_tensor({2}, seed);
    model({x});
    ASSERT_EQ(layer->losses().size(), 1U);
    EXPECT_EQ(layer->losses()[0].item(), ops::reduce_sum(x).item());
    EXPECT_EQ(layer->updates().size(), 1U);
    EXPECT_TRUE(layer->get_losses_for({}).empty());
    EXPECT_TRUE(layer->get_updates_for({}).empty());
  }
  (*layer)({x_});
  ASSERT_EQ(layer->losses().size(), 1U);
  EXPECT_EQ(layer->losses()[0].item(), ops::reduce_sum(x_).item());
}

TEST_F(Calls, ACallThatTakesSeveralOutputsIsOneNode) {
  const auto source = std::make_shared<Two>(), other = std::make_shared<Two>();
  Two sink, second;
  const Tensor in = Input({2}, DType::kFloat64);
  const std::vector<Tensor> y = (*source)({in}), z = (*other)({in});
  sink({y[0], y[1], z[1]});
  second({y[1]});
  EXPECT_EQ(source->outbound_nodes(),
            (Layer::NodeList{sink.inbound_nodes()[0], second.inbound_nodes()[0]}));
  EXPECT_EQ(other->outbound_nodes(), (Layer::NodeList{sink.inbound_nodes()[0]}));
  EXPECT_TRUE(sink.outbound_nodes().empty());
  EXPECT_EQ(sink.get_input_shape_at(0), (std::vector<Shape>{{2}, {2}, {2}}));
  EXPECT_EQ(sink.get_output_shape_at(0), (std::vector<Shape>{{2}, {2}}));
  const std::vector<Tensor> inputs = sink.get_input_at(0);
  EXPECT_TRUE(same_tensor(inputs[0], y[0]));
  EXPECT_TRUE(same_tensor(inputs[1], y[1]));
  EXPECT_TRUE(same_tensor(inputs[2], z[1]));
}

TEST_F(Calls, EachOutputIsAnInputByItself) {
  const auto layer = std::make_shared<Two>(), next = std::make_shared<Two>();
  const Tensor in = Input({2}, DType::kFloat64);
  const std::vector<Tensor> y = (*layer)({in});
  const std::vector<Tensor> by_layer = (*next)({y[1]});
  Model model({in}, {ops::negate(y[0]), ops::negate(y[1]), by_layer[1], y[1], y[0]});
  const std::vector<Tensor> out = model({x_});
  const Tensor tanh = ops::tanh(x_), exp = ops::exp(x_);
  EXPECT_EQ(values_of(out[0]), values_of(ops::negate(tanh)));
  EXPECT_EQ(values_of(out[1]), values_of(ops::negate(exp)));
  EXPECT_EQ(values_of(out[2]), values_of(ops::exp(exp)));
  EXPECT_EQ(values_of(out[3]), values_of(exp));
  EXPECT_EQ(values_of(out[4]), values_of(tanh));
}

TEST_F(Calls, TensorsAreTheSameByCallAndOutput) {
  const auto layer = std::make_shared<Two>();
  const Tensor in = Input({2}, DType::kFloat64), other = Input({2}, DType::kFloat64);
  const std::vector<Tensor> y = (*layer)({in}), again = (*layer)({in});
  const Tensor shaped = ops::reshape(x_, {1, 2}), copy = ops::scale(x_, 1.0), shared = x_;
  const std::vector<Tensor> all{in, other, y[0], y[1], again[0], again[1], x_, copy, shaped};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      EXPECT_EQ(same_tensor(all[i], all[k]), i == k) << i << " and " << k;
    }
    EXPECT_FALSE(same_tensor(all[i], Tensor()) || same_tensor(Tensor(), all[i]));
  }
  EXPECT_FALSE(same_tensor(Tensor(), Tensor()));
  EXPECT_TRUE(same_tensor(x_, shared));
  EXPECT_TRUE(same_tensor(y[1], layer->get_output_at(0)[1]));
  EXPECT_FALSE(same_tensor(y[1], layer->get_output_at(0)[0]));
  EXPECT_TRUE(depends_on(ops::tanh(y[1]), {y[1]}));
  EXPECT_FALSE(depends_on(ops::tanh(y[1]), {y[0]}));
  EXPECT_TRUE(depends_on(ops::tanh(y[1]), {other, in}));
  EXPECT_FALSE(depends_on(ops::tanh(y[1]), {other}));
  EXPECT_TRUE(depends_on(y[0], {y[0]}));
}

TEST_F(Calls, LossesBelongToTheOutputThatTheyAreOf) {
  const auto layer = std::make_shared<Two>();
  const Tensor in = Input({2}, DType::kFloat64);
  const std::vector<Tensor> y = (*layer)({in});
  layer->add_loss(ops::reduce_sum(y[1]), {y[1]});
  EXPECT_EQ(layer->get_losses_for({y[1]}).size(), 1U);
  EXPECT_TRUE(layer->get_losses_for({y[0]}).empty());
  EXPECT_EQ(layer->get_losses_for({y[0], y[1]}).size(), 1U);
  EXPECT_EQ(layer->get_losses_for({in}).size(), 1U);
  EXPECT_TRUE(layer->get_losses_for({}).empty());
  // An output may be given: the loss then reads it, and the other one is computed.
  Model model({in, y[1]}, {y[0], ops::negate(y[1])});
  const Tensor given = random_tensor({2}, 5);
  const std::vector<Tensor> out = model({x_, given});
  EXPECT_EQ(values_of(out[0]), values_of(ops::tanh(x_)));
  EXPECT_EQ(values_of(out[1]), values_of(ops::negate(given)));
  ASSERT_EQ(model.losses().size(), 1U);
  EXPECT_EQ(model.losses()[0].item(), ops::reduce_sum(given).item());
  // Where nothing reads the other one, its call is not run.
  Model without({y[1]}, {ops::negate(y[1])});
  EXPECT_EQ(values_of(without({given})[0]), values_of(out[1]));
}

// What a model tracks beside its graph is a part of it in every way.
TEST_F(Calls, AModelHasWhatItTracksBesideItsGraph) {
  const auto inside = std::make_shared<Two>("inside"), beside = std::make_shared<Two>("beside");
  const Tensor in = Input({2}, DType::kFloat64);
  Model model({in}, {(*inside)({in})[0]});
  beside->build({2});
  model.track("beside", beside);
  EXPECT_EQ(model.layers(), (std::vector<Layer*>{inside.get()}));
  EXPECT_EQ(model.sublayers(), (std::vector<Layer*>{inside.get(), beside.get()}));
  ASSERT_EQ(model.weights().size(), 2U);
  EXPECT_EQ(model.weights()[0].name(), "inside/w");
  EXPECT_EQ(model.weights()[1].name(), "beside/w");
  EXPECT_EQ(model.count_params(), 4);
  beside->add_loss([] { return random_tensor({}, 7); });
  beside->add_update([] {});
  ASSERT_EQ(model.losses().size(), 1U);
  EXPECT_EQ(model.losses()[0].item(), random_tensor({}, 7).item());
  EXPECT_EQ(model.get_losses_for({}).size(), 1U);
  EXPECT_EQ(model.updates().size(), 1U);
  EXPECT_EQ(model.get_updates_for({}).size(), 1U);
  EXPECT_FALSE(model.has_call_losses());
  beside->adds = true;
  (*beside)({x_});
  EXPECT_TRUE(model.has_call_losses());
  model.set_trainable(false);
  EXPECT_FALSE(inside->trainable() || beside->trainable());
  EXPECT_TRUE(model.trainable_weights().empty());
  EXPECT_EQ(model.non_trainable_weights().size(), 2U);
  EXPECT_TRUE(model.updates().empty());
}

}  // namespace
}  // namespace openrnn::testing
