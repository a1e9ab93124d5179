#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

TEST(Scope, NamesNest) {
  EXPECT_EQ(VariableScope::current_name(), "");
  {
    const VariableScope a("a");
    const VariableScope b("b/c");
    EXPECT_EQ(VariableScope::current_name(), "a/b/c");
    EXPECT_FALSE(VariableScope::current_reuse());
  }
  EXPECT_EQ(VariableScope::current_name(), "");
  EXPECT_EQ(message_of<ArgumentError>([] { const VariableScope bad("a//b"); }),
            "[VariableScope] name is 'a//b', expected words that single slashes separate");
  EXPECT_THROW(VariableScope(""), ArgumentError);
}

TEST(Scope, EveryNameIsWordsBetweenSingleSlashes) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable known("known", Array(DType::kFloat32, {1}));
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("/"),
        std::string("a\0b", 3), std::string("a\0", 2)}) {
    EXPECT_THROW(VariableScope{name}, ArgumentError) << name;
    EXPECT_THROW(get_variable(name, {1}), ArgumentError) << name;
    EXPECT_THROW(Variable(name, Array(DType::kFloat32, {1})), ArgumentError) << name;
    EXPECT_THROW(known.rename(name), ArgumentError) << name;
  }
  EXPECT_EQ(VariableScope::current_name(), "");
  EXPECT_EQ(graph.variables().size(), 1u);
}

TEST(Scope, BelongsToItsGraph) {
  const VariableScope outer("outer");
  Graph graph;
  {
    const Graph::AsDefault scope(graph);
    EXPECT_EQ(VariableScope::current_name(), "");
    EXPECT_EQ(&Graph::current(), &graph);
    const VariableScope inner("inner");
    EXPECT_EQ(VariableScope::current_name(), "inner");
  }
  EXPECT_EQ(VariableScope::current_name(), "outer");
  EXPECT_NE(&Graph::current(), &graph);
}

TEST(Scope, UniqueNamesCount) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  EXPECT_EQ(graph.unique_name("", "cell"), "cell");
  EXPECT_EQ(graph.unique_name("", "cell"), "cell_1");
  EXPECT_EQ(graph.unique_name("", "cell_1"), "cell_1_1");
  EXPECT_EQ(graph.unique_name("", "cell"), "cell_2");
  EXPECT_EQ(graph.unique_name("m", "cell"), "cell");
}

TEST(Scope, OpenedAgainItCountsFromTheStart) {
  Graph graph;
  const Graph::AsDefault as_default(graph);
  {
    const VariableScope scope("m");
    EXPECT_EQ(graph.unique_name("m", "cell"), "cell");
    EXPECT_EQ(graph.unique_name("m", "cell"), "cell_1");
  }
  const VariableScope scope("m");
  EXPECT_EQ(graph.unique_name("m", "cell"), "cell");
  EXPECT_EQ(graph.unique_name("", "m"), "m_1") << "the scope's own name stays taken";
}

TEST(Seeds, FollowTheSeedHelper) {
  using Pair = std::pair<std::int64_t, std::int64_t>;
  Graph graph;
  EXPECT_EQ(graph.op_seeds({}), (Pair{0, 0}));
  EXPECT_EQ(graph.op_seeds(7), (Pair{87654321, 7}));
  EXPECT_EQ(graph.op_seeds(0), (Pair{87654321, 0}));
  graph.set_seed(3);
  EXPECT_EQ(graph.op_seeds(7), (Pair{3, 7}));
  const Pair first = graph.op_seeds({}), second = graph.op_seeds({});
  EXPECT_EQ(first.first, 3);
  EXPECT_NE(first.second, second.second);
  graph.set_seed(0);
  EXPECT_EQ(graph.op_seeds(0), (Pair{0, 2147483647}));
  EXPECT_EQ(graph.op_seeds(2147483647 + std::int64_t{5}), (Pair{0, 5}));
  EXPECT_EQ(graph.op_seeds(-1), (Pair{0, 2147483646}));
}

TEST(Collections, RegularizationLossesAreComputedWhenAsked) {
  Graph graph;
  int calls = 0;
  graph.add_regularization_loss([&] {
    ++calls;
    return random_tensor({1}, 1);
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(graph.regularization_losses().size(), 1u);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(message_of<ArgumentError>([&] { graph.add_saveable(nullptr); }),
            "[add_saveable] saveable is null, expected an object");
}

}  // namespace
}  // namespace openrnn::testing
