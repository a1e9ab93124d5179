// What a graph holds and for how long, its seeds, and changes of variables that are still open.
#include "graph/graph_state.h"
#include "graph/layer/support.h"
#include "graph/one_variable.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

class Held : public ::testing::Test {
 protected:
  static Variable variable(const std::string& name, double value = 0.5) {
    Array values(DType::kFloat64, {2});
    for (double& one : values.as<double>()) one = value;
    return {name, std::move(values)};
  }
  std::vector<std::string> names() const { return names_of(graph_.variables()); }

  Graph graph_;
  Graph::AsDefault as_default_{graph_};
};

TEST_F(Held, VariablesThatSomebodyHoldsInTheirOrder) {
  std::vector<Variable> held;
  std::vector<std::string> expected;
  for (int i = 0; i < 700; ++i) {
    const std::string name = "v" + std::to_string(i);
    const Variable one = variable(name, i);
    if (i % 7 != 3) continue;
    held.push_back(one);
    expected.push_back(name);
  }
  EXPECT_EQ(names(), expected);
  EXPECT_FALSE(graph_.has_variable("v0"));
  EXPECT_EQ(values_of(graph_.variable("v3").read()), (std::vector<double>{3, 3}));
  const Variable again = variable("v0");  // its name is free
  EXPECT_TRUE(graph_.variable("v0").same_as(again));
  expected.emplace_back("v0");
  EXPECT_EQ(names(), expected);
  held.clear();
  EXPECT_EQ(names(), (std::vector<std::string>{"v0"}));
  EXPECT_EQ(message_of<ArgumentError>([&] { graph_.variable("v3"); }),
            "[variable] name is 'v3', expected one of the graph's 1 variables");
}

TEST_F(Held, WhatItIsToldToKeep) {
  graph_.keep(variable("kept"));
  variable("dropped");
  EXPECT_EQ(names(), (std::vector<std::string>{"kept"}));
  const auto saveable = [] { return std::make_shared<OneVariable>(variable("of_saveable")); };
  graph_.add_saveable(saveable());
  EXPECT_EQ(graph_.saveables().size(), 1U);
  auto weak = std::make_shared<OneVariable>(variable("other"));
  graph_.add_saveable(weak, false);
  EXPECT_EQ(graph_.saveables().size(), 2U);
  EXPECT_EQ(graph_.saveables()[1], weak);
  weak.reset();
  EXPECT_EQ(graph_.saveables().size(), 1U);
  EXPECT_EQ(graph_.saveables()[0]->name(), "of_saveable");
}

TEST_F(Held, UpdatesOnceEach) {
  using Update = const std::function<void()>;
  auto kept = std::make_shared<Update>([] {}), weak = std::make_shared<Update>([] {});
  graph_.add_update(kept);
  graph_.add_update(weak, false);
  graph_.add_update(kept, false);
  graph_.add_update(weak);
  EXPECT_EQ(graph_.updates(), (std::vector{kept, weak}));
  const Update* const of_kept = kept.get();
  kept.reset();
  weak.reset();
  ASSERT_EQ(graph_.updates().size(), 1U) << "as it was added first";
  EXPECT_EQ(graph_.updates()[0].get(), of_kept);
}

TEST_F(Held, LossesInOrderWhileTheirSourceIsThere) {
  const auto found = [&] { return numbers_of(graph_.regularization_losses()); };
  using Source = const std::function<std::vector<Tensor>()>;
  auto source = std::make_shared<Source>([&] { return std::vector{number(2), number(3)}; });
  std::optional<Variable> weight = variable("w", 4.0);
  graph_.add_regularization_loss([&] { return number(1); });
  graph_.add_regularization_losses(source);
  graph_.add_regularizer(*weight, [](const Tensor& w) { return ops::reduce_sum(w); });
  graph_.add_regularization_losses([&] { return std::vector{number(6), number(7)}; });
  EXPECT_EQ(found(), (std::vector<double>{1, 2, 3, 8, 6, 7}));
  source.reset();
  EXPECT_EQ(found(), (std::vector<double>{1, 8, 6, 7}));
  weight.reset();
  EXPECT_EQ(found(), (std::vector<double>{1, 6, 7}));
}

TEST_F(Held, AKeeperHasWhatIsMadeMeanwhile) {
  variable("before");
  {
    const graph::Keeper outer(graph_);
    variable("a");
    {
      const graph::Keeper inner(graph_);
      variable("b");
      EXPECT_EQ(names_of(inner.variables()), (std::vector<std::string>{"b"}));
    }
    Graph other;
    {
      const Graph::AsDefault elsewhere(other);
      variable("c");
    }
    EXPECT_EQ(names_of(outer.variables()), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(names(), (std::vector<std::string>{"a", "b"}));
  }
  EXPECT_TRUE(names().empty());
}

// What was there before stays, whatever is taken back.
TEST_F(Held, ARollbackTakesBackWhatCameSince) {
  graph_.set_seed(4);
  const Variable first = variable("first");
  const auto one = std::make_shared<OneVariable>(first);
  graph_.add_saveable(one);
  graph_.add_regularization_loss([] { return random_tensor({}, 1); });
  graph_.add_to_collection("mine", 1);
  EXPECT_EQ(graph_.unique_name("", "cell"), "cell");
  EXPECT_EQ(graph_.op_seeds({}), (std::pair<std::int64_t, std::int64_t>{4, 0}));
  std::vector<Variable> held;
  for (const bool keep : {false, true}) {
    graph::Rollback rollback(graph_);
    held.push_back(variable("second"));
    graph_.add_saveable(std::make_shared<OneVariable>(held.back()));
    graph_.add_regularization_loss([] { return random_tensor({}, 2); });
    graph_.add_to_collection("mine", 2);
    graph_.add_to_collection("new", 3);
    EXPECT_EQ(graph_.unique_name("", "cell"), "cell_1");
    EXPECT_EQ(graph_.op_seeds({}), (std::pair<std::int64_t, std::int64_t>{4, 1}));
    if (keep) rollback.keep();
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"first", "second"}));
  EXPECT_TRUE(graph_.variable("second").same_as(held[1]));
  EXPECT_TRUE(graph_.variable("first").same_as(first));
  EXPECT_EQ(graph_.saveables().size(), 2U);
  EXPECT_EQ(graph_.saveables()[0], one);
  EXPECT_EQ(graph_.regularization_losses().size(), 2U);
  EXPECT_EQ(graph_.get_collection<int>("mine"), (std::vector<int>{1, 2}));
  EXPECT_EQ(graph_.get_collection<int>("new"), (std::vector<int>{3}));
  EXPECT_EQ(graph_.unique_name("", "cell"), "cell_2");
  EXPECT_EQ(graph_.op_seeds({}), (std::pair<std::int64_t, std::int64_t>{4, 2}));
}

TEST_F(Held, SeedsCountEveryOperation) {
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_FALSE(graph_.seed());
  EXPECT_EQ(graph_.op_seeds({}), (Pair{0, 0}));
  EXPECT_EQ(graph_.op_seeds(11), (Pair{87654321, 11}));
  graph_.set_seed(9);
  EXPECT_EQ(graph_.seed(), 9);
  EXPECT_EQ(graph_.op_seeds({}), (Pair{9, 2})) << "those before count";
  EXPECT_EQ(graph_.op_seeds(11), (Pair{9, 11}));
  EXPECT_EQ(graph_.op_seeds({}), (Pair{9, 4}));
  for (const auto& [given, found] :
       {Pair{-1, 2147483646}, Pair{2147483646, 2147483646}, Pair{2147483647, 0},
        Pair{2147483652, 5}, Pair{-2147483648, 2147483646}}) {
    graph_.set_seed(given);
    EXPECT_EQ(graph_.op_seeds(3), (Pair{found, 3})) << given;
  }
  graph_.set_seed({});
  EXPECT_FALSE(graph_.seed());
  EXPECT_EQ(graph_.op_seeds({}), (Pair{0, 0}));
}

TEST_F(Held, GraphsAreCurrentInsideEachOther) {
  Graph second, third;
  EXPECT_NE(second.id(), third.id());
  EXPECT_NE(second.id(), graph_.id());
  {
    const Graph::AsDefault in_second(second);
    {
      const Graph::AsDefault in_third(third);
      EXPECT_EQ(&Graph::current(), &third);
    }
    EXPECT_EQ(&Graph::current(), &second);
  }
  EXPECT_EQ(&Graph::current(), &graph_);
}

// A scope that closes frees the names inside it, and no others.
TEST_F(Held, AClosedScopeFreesItsOwnNames) {
  for (const char* const scope : {"m", "m/n", "ma", "l", "m_1"}) {
    EXPECT_EQ(graph_.unique_name(scope, "cell"), "cell") << scope;
  }
  { const VariableScope closing("m"); }
  for (const auto& [scope, name] : std::vector<std::pair<std::string, std::string>>{
           {"m", "cell"}, {"m/n", "cell"}, {"ma", "cell_1"}, {"l", "cell_1"}, {"m_1", "cell_1"}}) {
    EXPECT_EQ(graph_.unique_name(scope, "cell"), name) << scope;
  }
}

// Counts what is asked of it.
struct Change : OpenChange {
  void settle() override { ++settled; }
  void report() override { ++reported; }
  int settled = 0, reported = 0;
};

TEST_F(Held, AnOpenChangeIsSettledByWhatItSays) {
  const Variable v = variable("v");
  const Array one = random_tensor({2}, 1).to_host();
  struct Use {
    const char* name;
    std::function<void()> run;
    SettledBy by;  // that, or what comes after it
  };
  const std::vector<Use> uses{{"read", [&] { v.read(); }, SettledBy::kRead},
                              {"assign", [&] { v.assign(one.view()); }, SettledBy::kWrite},
                              {"add", [&] { v.assign_add(one.view()); }, SettledBy::kWrite},
                              {"subtract", [&] { v.assign_sub(one.view()); }, SettledBy::kWrite},
                              {"update", [&] { v.update([](void*) {}); }, SettledBy::kWrite}};
  for (const SettledBy by : {SettledBy::kToHost, SettledBy::kWrite, SettledBy::kRead}) {
    for (const Use& use : uses) {
      const auto change = std::make_shared<Change>();
      v.await(change, by);
      use.run();
      EXPECT_EQ(change->settled, use.by <= by ? 1 : 0) << use.name;
      EXPECT_EQ(change->reported, 0) << use.name;
      v.forget(Change());  // another one
      v.to_host();
      EXPECT_EQ(change->reported, 1) << use.name;
      v.forget(*change);
      use.run();
      v.to_host();
      EXPECT_EQ(change->reported, 1) << use.name << " after it was forgotten";
    }
  }
  const auto first = std::make_shared<Change>(), second = std::make_shared<Change>();
  v.await(first, SettledBy::kRead);
  v.await(second, SettledBy::kToHost);
  v.read();
  v.to_host();
  EXPECT_EQ(first->settled + first->reported, 0) << "it was replaced";
  EXPECT_EQ(second->settled, 0);
  EXPECT_EQ(second->reported, 1);
  EXPECT_EQ(first.use_count(), 1);
}

TEST_F(Held, ATensorOfOneElementIsANumber) {
  const auto item = [](auto value) {
    using T = decltype(value);
    return Tensor(Array::of<T>({1, 1}, std::vector<T>{value}).view()).item();
  };
  // More bits than a float32 has.
  EXPECT_EQ(item(std::int32_t{-16777217}), -16777217.0);
  EXPECT_EQ(item((std::int64_t{1} << 40U) + 1), 1099511627777.0);
  EXPECT_EQ(item(-(std::int64_t{1} << 52U) - 1), -4503599627370497.0);
  EXPECT_EQ(item(std::uint8_t{200}), 200.0);
  EXPECT_EQ(item(2.5F), 2.5);
  EXPECT_EQ(item(-0.1), -0.1);
  for (const bool truth : {false, true}) {
    Array value(DType::kBool, {});
    value.as<bool>()[0] = truth;
    EXPECT_EQ(Tensor(value.view()).item(), truth ? 1.0 : 0.0);
  }
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    EXPECT_EQ(random_tensor({}, 1, -1.75, -1.75, dtype).item(), -1.75);
  }
  EXPECT_EQ(message_of<ArgumentError>([] {
              random_tensor({0, 3}, 1).item();
            }),
            "[item] the tensor has shape [0, 3], expected exactly one element");
}

// Also of what comes first after it.
TEST_F(Held, ARollbackTakesBackTheFirstEntry) {
  const auto one = std::make_shared<OneVariable>(variable("v"));
  {
    const graph::Rollback rollback(graph_);
    graph_.add_saveable(one);
  }
  EXPECT_TRUE(graph_.saveables().empty());
  {
    const graph::Rollback rollback(graph_);
    graph_.add_regularization_loss([] { return random_tensor({}, 2); });
  }
  EXPECT_TRUE(graph_.regularization_losses().empty());
  {
    const graph::Rollback rollback(graph_);
    variable("w");
    const Variable held = variable("x");
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"v"}));
}

// What nobody holds takes no memory for long.
TEST_F(Held, EntriesOfDroppedVariablesGo) {
  for (int i = 0; i < 2000; ++i) variable("v" + std::to_string(i));
  EXPECT_LT(graph_.state().variables.size(), 200U);
  EXPECT_LT(graph_.state().variables_by_name.size(), 200U);
}

TEST_F(Held, WhatIsMadeOfNothingIsPlaced) {
  const DeviceArray value = random_tensor({2}, 1).value();
  EXPECT_TRUE(record("made", {}, {value}, {})[0].placed());
  const Tensor host(random_tensor({2}, 1).to_host().view());
  EXPECT_FALSE(record("made", {host, Tensor()}, {value}, {})[0].placed());
  EXPECT_TRUE(record("made", {host, Tensor(value)}, {value}, {})[0].placed());
  const GradientTape tape;
  const Variable fixed("fixed", random_tensor({2}, 1).to_host(), false);
  EXPECT_EQ(fixed.read().version(), 1U);
  EXPECT_EQ(tape.watch(fixed.read()).version(), 0U) << "no variable's read";
}

}  // namespace
}  // namespace openrnn::testing
