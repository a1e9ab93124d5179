// The members of a layer in their rarer forms: failed builds, parts, losses, waiting functions.
#include "graph/layer/support.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

// Its weights are made by hand; a call gives its inputs back.
class Plain : public Layer {
 public:
  explicit Plain(std::string name = "", const Device* device = nullptr)
      : Layer(std::move(name), "plain", DType::kFloat64, device) {}
  using Layer::require_class_build;
  using Layer::set_input_spec;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    ensure_built(inputs[0].shape());
    return run_call(inputs, {{inputs[0].dtype(), inputs[0].shape()}});
  }
  std::function<void()> in_build;

 protected:
  void do_build(const Shape&) override {
    if (in_build) in_build();
  }
  std::vector<Tensor> compute_call(const Attributes&, const std::vector<Tensor>& inputs,
                                   const Replay&) override {
    return {inputs[0]};
  }
};

const VariableOptions kWide{.dtype = DType::kFloat64};
const VariableOptions kFixed{.dtype = DType::kFloat64, .trainable = false};

class Protocol : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
  const Tensor x_ = random_tensor({2}, 1);
};

// What was there before the build that failed stays.
TEST_F(Protocol, AFailedBuildTakesBackItsOwn) {
  Plain layer;
  layer.add_weight("before", {2}, kWide);
  layer.add_loss([] { return number(1); });
  layer.add_update([] {});
  bool fails = true;
  layer.in_build = [&] {
    layer.add_weight("inside", {3}, kWide);
    layer.add_loss([] { return number(2); });
    layer.add_update([] {});
    layer.set_input_spec({.ndim = 1});
    if (fails) throw StateError("mine");
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(layer.build({2}), StateError);
    EXPECT_FALSE(layer.built() || layer.input_spec());
    EXPECT_EQ(layer.scope_name(), "plain");
    EXPECT_EQ(names_of(layer.weights()), (std::vector<std::string>{"plain/before"}));
    EXPECT_EQ(numbers_of(layer.losses()), (std::vector<double>{1}));
    EXPECT_EQ(layer.updates().size(), 1U);
    EXPECT_EQ(graph_.variables().size(), 1U);
  }
  fails = false;
  layer.build({2});
  EXPECT_EQ(names_of(layer.weights()), (std::vector<std::string>{"plain/before", "plain/inside"}));
  EXPECT_EQ(numbers_of(layer.losses()), (std::vector<double>{1, 2}));
  EXPECT_EQ(layer.updates().size(), 2U);
  EXPECT_EQ(layer.input_spec()->ndim, 1U);
  layer.in_build = [] { ADD_FAILURE() << "built again"; };
  layer.build({5});
  EXPECT_EQ(layer.state().input_shape, (Shape{2})) << "of the build";
}

TEST_F(Protocol, AFailedFirstBuildLeavesNoName) {
  Plain layer, named("given"), other;
  for (Plain* const each : {&layer, &named}) {
    each->in_build = [] { throw StateError("mine"); };
    EXPECT_THROW(each->build({2}), StateError);
    EXPECT_THROW(each->scope_name(), ArgumentError);
    EXPECT_THROW(each->graph(), ArgumentError);
    each->in_build = {};
  }
  other.build({2});
  layer.build({2});
  named.build({2});
  EXPECT_EQ(other.scope_name(), "plain");
  EXPECT_EQ(layer.scope_name(), "plain_1");
  EXPECT_EQ(layer.name(), "plain_1");
  EXPECT_EQ(named.scope_name(), "given");
  EXPECT_EQ(named.state().saveable_scope, "");
}

// Trained ones first, each layer's own before its variables' and those before its layers'.
TEST_F(Protocol, WeightsHaveAnOrder) {
  Plain layer("a");
  const auto inner = std::make_shared<Plain>("b"), last = std::make_shared<Plain>("c");
  const auto variable = [](const std::string& name, bool trainable) {
    return Variable(name, random_tensor({2}, 3).to_host(), trainable);
  };
  const Variable one = variable("one", true), two = variable("two", false),
                 three = variable("three", true);
  layer.add_weight("fixed", {2}, kFixed);
  layer.add_weight("free", {3}, kWide);
  inner->add_weight("fixed", {2}, kFixed);
  inner->add_weight("free", {4}, kWide);
  last->add_weight("free", {5}, kWide);
  layer.track("inner", inner);
  layer.track("one", one);
  layer.track("group", std::vector<LayerPart>{
                           {.name = "two", .variable = two},
                           Layer::part_of("last", last),
                           {.name = "again", .variable = one},
                           {.name = "deep", .parts = {{.name = "three", .variable = three}}}});
  const std::vector<std::string> trained{"a/free", "one", "three", "b/free", "c/free"},
      others{"a/fixed", "two", "b/fixed"};
  EXPECT_EQ(names_of(layer.trainable_weights()), trained);
  EXPECT_EQ(names_of(layer.non_trainable_weights()), others);
  std::vector<std::string> all = trained;
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(names_of(layer.weights()), all);
  EXPECT_EQ(names_of(layer.own_weights()), (std::vector<std::string>{"a/fixed", "a/free"}));
  EXPECT_EQ(layer.sublayers(), (std::vector<Layer*>{inner.get(), last.get()}));
  layer.build({2});
  EXPECT_EQ(layer.count_params(), 3 + 2 + 2 + 4 + 5 + 2 + 2 + 2);
  // Values go in that order, too.
  std::vector<Array> values;
  for (const Variable& each : layer.weights()) {
    values.push_back(random_tensor(each.shape(), 20 + values.size()).to_host());
  }
  layer.set_weights(values);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(values_of(graph_.variable(all[i]).read()), values_of(Tensor(values[i].view())));
    EXPECT_EQ(values_of(Tensor(layer.get_weights()[i].view())),
              values_of(Tensor(values[i].view())));
  }
  values[1] = Array(DType::kFloat32, {2});
  EXPECT_EQ(message_of<ArgumentError>([&] { layer.set_weights(values); }),
            "[set_weights] values[1] is float32 of shape [2], expected float64 of shape [2] as "
            "'one'");
}

TEST_F(Protocol, PartsOfASourceComeLast) {
  Plain layer("a");
  const auto first = std::make_shared<Plain>("b"), second = std::make_shared<Plain>("c");
  std::vector<LayerPart> more{Layer::part_of("x", second)};
  layer.track_from([&] { return more; });
  layer.track("y", first);
  const auto parts = [&] {
    std::vector<std::string> all;
    for (const LayerPart& part : layer.parts()) all.push_back(part.name);
    return all;
  };
  EXPECT_EQ(parts(), (std::vector<std::string>{"y", "x"}));
  EXPECT_EQ(layer.sublayers(), (std::vector<Layer*>{first.get(), second.get()}));
  layer.set_trainable(false);
  EXPECT_FALSE(first->trainable() || second->trainable());
  more.push_back(Layer::part_of("z", std::make_shared<Plain>("d")));
  EXPECT_EQ(parts(), (std::vector<std::string>{"y", "x", "z"}));
  EXPECT_TRUE(layer.sublayers()[2]->trainable());
  layer.part_was_added(more.back());
  EXPECT_FALSE(layer.sublayers()[2]->trainable());
  // Only what it owns is kept alive.
  auto member = std::make_unique<Plain>("member");
  layer.track("member", *member);
  EXPECT_EQ(layer.sublayers().size(), 4U);
  member.reset();
  EXPECT_EQ(layer.sublayers().size(), 3U);
  EXPECT_EQ(parts().size(), 4U);
}

// Functions run in their order until they are done; one that throws ends the round.
TEST_F(Protocol, FunctionsWaitUntilTheyAreDone) {
  Plain layer;
  std::string ran;
  int left = 2;
  bool throws = true;
  const auto note = [&ran](char which, bool done) {
    ran += which;
    return done;
  };
  layer.when_changed([&] { return note('a', true); });
  layer.when_changed([&] { return note('b', --left == 0); });
  layer.when_changed([&] {
    note('c', true);
    if (throws) throw StateError("mine");
    return true;
  });
  layer.when_changed([&] { return note('d', false); });
  EXPECT_EQ(ran, "");
  EXPECT_THROW(layer.build({2}), StateError);
  EXPECT_FALSE(layer.built());
  EXPECT_EQ(std::exchange(ran, ""), "abc");
  throws = false;
  layer.build({2});
  EXPECT_EQ(std::exchange(ran, ""), "bcd");
  layer.track("part", std::make_shared<Plain>());
  EXPECT_EQ(std::exchange(ran, ""), "d");
  layer.when_changed([&] { return note('e', true); });
  layer({x_});
  EXPECT_EQ(std::exchange(ran, ""), "de");
  layer({x_});
  EXPECT_EQ(std::exchange(ran, ""), "d");
}

TEST_F(Protocol, LossesCountAsTheyWereAdded) {
  const auto layer = std::make_shared<Plain>(), inner = std::make_shared<Plain>();
  layer->track("inner", inner);
  layer->add_loss([] { return number(1); });
  layer->add_loss(number(2));
  layer->add_loss(number(3), {x_});
  inner->add_loss([] { return number(4); });
  inner->add_loss(number(5), {x_});
  EXPECT_EQ(numbers_of(layer->losses()), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers_of(layer->get_losses_for({})), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(numbers_of(layer->get_losses_for({x_})), (std::vector<double>{3, 5}));
  EXPECT_EQ(numbers_of(layer->get_losses_for({random_tensor({2}, 2), x_})),
            (std::vector<double>{3, 5}));
  EXPECT_TRUE(layer->has_call_losses());
  EXPECT_EQ(numbers_of(graph_.regularization_losses()), (std::vector<double>{1, 2, 3, 4, 5}));
  // Of inputs, they are of the call; the next one ends them.
  (*layer)({x_});
  EXPECT_EQ(numbers_of(layer->losses()), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(numbers_of(graph_.regularization_losses()), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_TRUE(layer->has_call_losses()) << "the inner one's";
  (*inner)({x_});
  EXPECT_FALSE(layer->has_call_losses());
  EXPECT_EQ(numbers_of(layer->losses()), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(numbers_of(inner->losses()), (std::vector<double>{4}));
}

TEST_F(Protocol, UpdatesCountWhileTheirLayerIsTrainedOrStateful) {
  const auto layer = std::make_shared<Plain>(), inner = std::make_shared<Plain>();
  layer->track("inner", inner);
  std::string ran;
  const auto run = [&](const std::vector<UpdateFunction>& updates) {
    ran.clear();
    for (const auto& update : updates) update();
    return ran;
  };
  layer->add_update([&] { ran += 'a'; });
  layer->add_update([&] { ran += 'b'; }, {x_});
  inner->add_update([&] { ran += 'c'; });
  inner->add_update([&] { ran += 'd'; }, {x_});
  for (const auto& [trained, stateful, trained_inner, stateful_inner, all] :
       {std::tuple(true, false, true, false, std::string("abcd")),
        {true, false, false, false, "ab"},
        {true, false, false, true, "abcd"},
        {false, false, true, true, ""},
        {false, true, false, false, "ab"},
        {false, true, true, false, "abcd"}}) {
    layer->set_trainable(trained);
    inner->set_trainable(trained_inner);
    layer->stateful = stateful;
    inner->stateful = stateful_inner;
    const auto of = [&all = all](const std::string& names) {
      std::string found;
      for (const char name : all) {
        if (names.find(name) != std::string::npos) found += name;
      }
      return found;
    };
    EXPECT_EQ(run(layer->updates()), all);
    EXPECT_EQ(run(layer->get_updates_for({})), of("ac"));
    EXPECT_EQ(run(layer->get_updates_for({x_})), of("bd"));
    EXPECT_EQ(run(layer->get_updates_for({random_tensor({2}, 2)})), "");
  }
  // A call tells the graph of the layer's own, if they count.
  layer->stateful = false;
  layer->set_trainable(false);
  (*layer)({x_});
  EXPECT_TRUE(graph_.updates().empty());
  layer->set_trainable(true);
  (*layer)({x_});
  ran.clear();
  for (const auto& update : graph_.updates()) (*update)();
  EXPECT_EQ(ran, "ab");
}

TEST_F(Protocol, HostDataGoesToTheLayersDevice) {
  const Plain layer("there", &test_device(1));
  const Tensor host(random_tensor({2}, 1).to_host().view()), here = host.to(cpu_device());
  EXPECT_EQ(&layer.placed(host).device(), &test_device(1));
  EXPECT_EQ(&layer.placed(here).device(), &cpu_device()) << "it was placed";
  const Tensor whole = int_tensor({2}, {1, 2}), symbolic = Input({2});
  EXPECT_EQ(layer.placed(whole).value().data(), whole.value().data());
  EXPECT_TRUE(same_tensor(layer.placed(symbolic), symbolic));
  EXPECT_TRUE(layer.placed(Tensor()).empty());
}

TEST_F(Protocol, EachMemberSaysThatThereIsNoNode) {
  const Plain layer("lonely");
  const std::vector<std::pair<std::string, std::function<void()>>> connected{
      {"input", [&] { layer.input(); }},
      {"output", [&] { layer.output(); }},
      {"input_shape", [&] { layer.input_shape(); }},
      {"output_shape", [&] { layer.output_shape(); }},
      {"input_mask", [&] { layer.input_mask(); }},
      {"output_mask", [&] { layer.output_mask(); }}};
  for (const auto& [name, call] : connected) {
    EXPECT_EQ(message_of<NotConnectedError>(call),
              "[" + name +
                  "] the layer 'lonely' is not connected: it has no inbound nodes as it "
                  "has never been called on a symbolic tensor, expected a call on an Input");
  }
  const std::vector<std::pair<std::string, std::function<void()>>> at{
      {"get_input_at", [&] { layer.get_input_at(0); }},
      {"get_output_at", [&] { layer.get_output_at(0); }},
      {"get_input_shape_at", [&] { layer.get_input_shape_at(0); }},
      {"get_output_shape_at", [&] { layer.get_output_shape_at(0); }},
      {"get_input_mask_at", [&] { layer.get_input_mask_at(0); }},
      {"get_output_mask_at", [&] { layer.get_output_mask_at(0); }}};
  for (const auto& [name, call] : at) {
    EXPECT_EQ(message_of<StateError>(call),
              "[" + name +
                  "] the layer 'lonely' has never been called on a symbolic tensor and "
                  "has no node, expected a call on an Input before");
  }
  EXPECT_TRUE(layer.outbound_nodes().empty() && layer.inbound_nodes().empty());
}

TEST_F(Protocol, EachNodeIsFoundByItsNumber) {
  Plain layer;
  const Tensor a = Input({2}, DType::kFloat64), b = Input({3}, DType::kFloat64);
  const std::vector<Tensor> in[] = {{a}, {b, a}, {a, b, b}};
  std::vector<Tensor> out;
  for (const auto& inputs : in) out.push_back(layer(inputs)[0]);
  ASSERT_EQ(layer.inbound_nodes().size(), 3U);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::vector<Tensor> found = layer.get_input_at(i);
    ASSERT_EQ(found.size(), in[at].size());
    std::vector<Shape> shapes;
    for (std::size_t k = 0; k < found.size(); ++k) {
      EXPECT_TRUE(same_tensor(found[k], in[at][k]));
      shapes.push_back(in[at][k].shape());
    }
    EXPECT_EQ(layer.get_input_shape_at(i), shapes);
    EXPECT_EQ(layer.get_output_shape_at(i), (std::vector<Shape>{in[at][0].shape()}));
    EXPECT_TRUE(same_tensor(layer.get_output_at(i)[0], out[at]));
    EXPECT_TRUE(layer.get_input_mask_at(i).empty() && layer.get_output_mask_at(i).empty());
  }
  EXPECT_TRUE(same_tensor(layer.input()[0], a));
  EXPECT_TRUE(same_tensor(layer.output()[0], out[0]));
  EXPECT_TRUE(layer.input_mask().empty() && layer.output_mask().empty());
}

// Each attempt runs the class's build again.
TEST_F(Protocol, AnOverridingBuildThatFailedRunsAgain) {
  Plain layer;
  int built = 0;
  bool fails = true;
  layer.in_build = [&] { ++built; };
  layer.override_build([&](const Shape& shape) {
    layer.build(shape);
    layer.build(shape);  // once an attempt
    if (fails) throw StateError("mine");
  });
  EXPECT_THROW(layer.build({2}), StateError);
  EXPECT_EQ(built, 1);
  fails = false;
  layer.build({2});
  EXPECT_EQ(built, 2);
  EXPECT_NO_THROW(layer.require_class_build());
}

// A layer that was built before the override was known is built by it.
TEST_F(Protocol, AnOverrideOfABuiltLayerRunsAtItsNextCall) {
  const Tensor in = Input({2}, DType::kFloat64);
  Model model({in}, {ops::negate(in)});
  std::vector<Shape> shapes;
  model.override_build([&](const Shape& shape) { shapes.push_back(shape); });
  EXPECT_FALSE(model.built());
  model({x_});
  model({x_});
  EXPECT_EQ(shapes, (std::vector<Shape>{{2}}));
}

TEST_F(Protocol, AFailedBuildGivesTheNameBack) {
  Plain first, second;
  first.build({2});
  second.in_build = [] { throw StateError("mine"); };
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THROW(second.build({2}), StateError);
    EXPECT_EQ(second.name(), "plain");
  }
  second.in_build = {};
  second.build({2});
  EXPECT_EQ(second.name(), "plain_1");
}

TEST_F(Protocol, AFrozenLayerTrainsNothingThatOthersTrain) {
  Plain maker("maker"), other("other");
  maker.add_weight("w", {2}, kWide);
  other.track("shared", maker.weights()[0]);
  other.set_trainable(false);
  EXPECT_EQ(maker.trainable_weights().size(), 1U);
  EXPECT_TRUE(other.trainable_weights().empty());
  EXPECT_EQ(other.non_trainable_weights().size(), 1U);
}

TEST_F(Protocol, UpdatesGoWithTheirLayer) {
  auto layer = std::make_unique<Plain>();
  layer->add_update([] {});
  (*layer)({x_});
  EXPECT_EQ(graph_.updates().size(), 1U);
  layer.reset();
  EXPECT_TRUE(graph_.updates().empty());
}

}  // namespace
}  // namespace openrnn::testing
