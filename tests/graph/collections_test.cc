// Collections by name: any value, and what the library fills itself.
#include "graph/graph_state.h"
#include "graph/one_variable.h"
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

class Collections : public ::testing::Test {
 protected:
  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

TEST_F(Collections, KeepAnyValueInOrder) {
  EXPECT_TRUE(graph_.get_collection("mine").empty());
  graph_.add_to_collection("mine", 1);
  graph_.add_to_collection("mine", 2);
  graph_.add_to_collection("mixed", std::string("text"));
  graph_.add_to_collection("mixed", 0.5);
  EXPECT_EQ(graph_.get_collection<int>("mine"), (std::vector<int>{1, 2}));
  const std::vector<std::any> mixed = graph_.get_collection("mixed");
  EXPECT_EQ(std::any_cast<std::string>(mixed.at(0)), "text");
  EXPECT_EQ(std::any_cast<double>(mixed.at(1)), 0.5);
  EXPECT_EQ(message_of<TypeError>([&] { graph_.get_collection<std::string>("mixed"); }),
            "[get_collection] value 1 of 'mixed' is of another type, expected the one that was "
            "asked for");
  const Graph other;
  EXPECT_TRUE(other.get_collection("mine").empty());
}

TEST_F(Collections, ThoseOfTheLibraryGoWhereItFindsThem) {
  const Variable v("v", random_tensor({2}, 1).to_host());
  const Variable fixed("fixed", random_tensor({2}, 1).to_host(), false);
  EXPECT_EQ(graph_.get_collection<Variable>(GraphKeys::kGlobalVariables).size(), 2u);
  const auto trainable = graph_.get_collection<Variable>(GraphKeys::kTrainableVariables);
  ASSERT_EQ(trainable.size(), 1u);
  EXPECT_TRUE(trainable[0].same_as(v));

  const std::shared_ptr<SaveableObject> saveable = std::make_shared<OneVariable>(v);
  graph_.add_to_collection(GraphKeys::kSaveableObjects, saveable);
  EXPECT_EQ(graph_.saveables(), std::vector{saveable});
  using Saveables = std::vector<std::shared_ptr<SaveableObject>>;
  EXPECT_EQ(graph_.get_collection<std::shared_ptr<SaveableObject>>(GraphKeys::kSaveableObjects),
            Saveables{saveable});

  graph_.add_to_collection(GraphKeys::kRegularizationLosses, ops::reduce_sum(v.read()));
  graph_.add_to_collection(GraphKeys::kRegularizationLosses,
                           std::function<Tensor()>([&] { return ops::reduce_sum(fixed.read()); }));
  EXPECT_EQ(graph_.regularization_losses().size(), 2u);
  EXPECT_EQ(graph_.get_collection<Tensor>(GraphKeys::kRegularizationLosses).size(), 2u);

  int runs = 0;
  graph_.add_to_collection(GraphKeys::kUpdateOps, std::function<void()>([&] { ++runs; }));
  for (const auto& update : graph_.get_collection<std::function<void()>>(GraphKeys::kUpdateOps)) {
    update();
  }
  EXPECT_EQ(runs, 1);
}

TEST_F(Collections, RefuseWhatTheyCannotTake) {
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { graph_.add_to_collection(GraphKeys::kTrainableVariables, Variable()); }),
            "[add_to_collection] key is 'trainable_variables', which variables enter when they are "
            "made; expected another one");
  EXPECT_THROW(graph_.add_to_collection(GraphKeys::kGlobalVariables, 1), ArgumentError);
  EXPECT_EQ(message_of<TypeError>([&] { graph_.add_to_collection(GraphKeys::kUpdateOps, 1); }),
            "[add_to_collection] a value of another type for 'update_ops', expected a "
            "std::function<void()> that is not empty");
  EXPECT_THROW(graph_.add_to_collection(GraphKeys::kUpdateOps, std::function<void()>()), TypeError);
  EXPECT_EQ(
      message_of<TypeError>([&] { graph_.add_to_collection(GraphKeys::kSaveableObjects, 1); }),
      "[add_to_collection] a value of another type for 'saveable_objects', expected a "
      "std::shared_ptr<SaveableObject>");
  EXPECT_EQ(
      message_of<TypeError>([&] { graph_.add_to_collection(GraphKeys::kRegularizationLosses, 1); }),
      "[add_to_collection] a value of another type for 'regularization_losses', expected a "
      "std::function<Tensor()> or a Tensor");
  EXPECT_EQ(message_of<ArgumentError>([&] { graph_.add_regularization_loss({}); }),
            "[add_regularization_loss] loss is empty, expected a function");
  EXPECT_EQ(message_of<ArgumentError>([&] { graph_.add_saveable(nullptr); }),
            "[add_saveable] saveable is null, expected an object");
}

// Registers one of everything, and fails.
class Failing : public Layer {
 public:
  Failing() : Layer("", "failing", DType::kFloat32) {}
  bool fails = true;

 protected:
  void do_build(const Shape&) override {
    Graph& graph = Graph::current();
    const Variable made =
        add_weight("w", {2}, {.regularizer = [](const Tensor& w) { return ops::reduce_sum(w); }});
    graph.add_saveable(std::make_shared<OneVariable>(made));
    graph.add_to_collection("mine", 7);
    seeds = graph.op_seeds({});
    set_input_spec({.ndim = 2});
    add_update([this] { ++runs; });
    add_loss([] { return random_tensor({}, 1); });
    if (fails) throw ArgumentError("[Failing] as asked");
  }

 public:
  std::pair<std::int64_t, std::int64_t> seeds;
  int runs = 0;
};

TEST_F(Collections, AFailedBuildLeavesNothing) {
  graph_.set_seed(5);
  graph_.add_to_collection("mine", 6);
  Failing layer;
  EXPECT_THROW(layer.build({2, 2}), ArgumentError);
  const auto of_failed = layer.seeds;
  EXPECT_TRUE(graph_.variables().empty());
  EXPECT_FALSE(graph_.has_variable("failing/w"));
  EXPECT_TRUE(graph_.saveables().empty());
  EXPECT_TRUE(graph_.regularization_losses().empty());
  EXPECT_EQ(graph_.get_collection<int>("mine"), (std::vector<int>{6}));
  EXPECT_FALSE(layer.built());
  EXPECT_TRUE(layer.weights().empty());
  EXPECT_TRUE(layer.losses().empty());
  EXPECT_TRUE(layer.updates().empty());
  EXPECT_FALSE(layer.input_spec().has_value());
  EXPECT_THROW(layer.scope_name(), ArgumentError);
  // The seed and the name that it took are free again.
  layer.fails = false;
  layer.build({2, 2});
  EXPECT_EQ(layer.seeds, of_failed);
  EXPECT_EQ(layer.scope_name(), "failing");
  EXPECT_EQ(graph_.get_collection<int>("mine"), (std::vector<int>{6, 7}));
  EXPECT_NE(graph_.op_seeds({}), of_failed);
  EXPECT_EQ(layer.losses().size(), 2u);
  for (const auto& update : layer.updates()) update();
  EXPECT_EQ(layer.runs, 1);
}

}  // namespace
}  // namespace openrnn::testing
