#include <limits>
#include <thread>

#include "ops/check_gradient.h"
#include "support/files/fnv.h"

namespace openrnn::testing {
namespace {

Array array(const Shape& shape, std::uint64_t seed, DType dtype = DType::kFloat32) {
  return random_tensor(shape, seed, -1, 1, dtype).to_host();
}

TEST(Variable, ReadsKeepTheirValue) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({3}, 1));
  const Tensor before = v.read();
  const std::vector<double> values = values_of(before);
  const std::uint64_t version = v.version();
  v.update([&](void* elements) {
    v.device().fill(DType::kFloat32, 1, 42, DType::kFloat32, nullptr,
                    static_cast<float*>(elements) + 1);
  });
  EXPECT_EQ(values_of(before), values);
  EXPECT_EQ(values_of(v.read())[1], 42.0);
  EXPECT_GT(v.version(), version);
  EXPECT_EQ(before.version(), version);
  EXPECT_EQ(v.read().leaf_id(), before.leaf_id());
}

TEST(Variable, UpdatesInPlaceWhenNobodyReads) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({300}, 1));
  const void* before = v.read().value().data();
  const void* seen = nullptr;
  v.update([&](void* elements) { seen = elements; });
  EXPECT_EQ(seen, before);
}

TEST(Variable, AddsAndSubtracts) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const Variable v(std::string(dtype_name(dtype)), array({3}, 1, dtype));
    const Tensor before = v.read();
    const Array change = array({3}, 2, dtype);
    const std::uint64_t version = v.version();
    v.assign_add(change.view());
    EXPECT_EQ(values_of(v.read()), values_of(ops::add(before, Tensor(change.view()))));
    EXPECT_GT(v.version(), version);
    v.assign_sub(DeviceArray::from_host(v.device(), change.view()));
    const Tensor sum = ops::add(before, Tensor(change.view()));
    EXPECT_EQ(values_of(v.read()), values_of(ops::subtract(sum, Tensor(change.view()))));
    EXPECT_EQ(values_of(before), values_of(Tensor(array({3}, 1, dtype).view())));
    // Its own value may be what is added.
    v.assign(array({3}, 1, dtype).view());
    v.assign_add(v.read().value());
    EXPECT_EQ(values_of(v.read()), values_of(ops::add(before, before)));
  }
}

template <class T>
void expect_integers_wrap(const char* name) {
  const T most = std::numeric_limits<T>::max(), one = 1, two = 2;
  const Variable v(name, Array::of<T>({}, {&most, 1}));
  v.assign_add(Array::of<T>({}, {&two, 1}).view());
  EXPECT_EQ(v.to_host().template as<T>()[0], static_cast<T>(std::numeric_limits<T>::min() + one));
  v.assign_sub(Array::of<T>({}, {&two, 1}).view());
  EXPECT_EQ(v.to_host().template as<T>()[0], most);
}

TEST(Variable, IntegersAddAndWrap) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  expect_integers_wrap<std::int64_t>("i64");
  expect_integers_wrap<std::int32_t>("i32");
  expect_integers_wrap<std::uint8_t>("u8");
}

TEST(Variable, AddingChecksShapeAndDtype) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({3}, 1)), flag("flag", Array(DType::kBool, {3}));
  const std::uint64_t version = v.version();
  EXPECT_EQ(message_of<ArgumentError>([&] { v.assign_add(array({2}, 1).view()); }),
            "[assign_add] the value is float32 of shape [2], expected float32 of shape [3] as 'v'");
  EXPECT_EQ(message_of<ArgumentError>([&] { v.assign_sub(array({2}, 1).view()); }),
            "[assign_sub] the value is float32 of shape [2], expected float32 of shape [3] as 'v'");
  EXPECT_EQ(message_of<ArgumentError>([&] { v.assign_sub(random_tensor({3}, 1).value()); }),
            "[assign_sub] the value is float64 of shape [3], expected float32 of shape [3] as 'v'");
  EXPECT_EQ(message_of<ArgumentError>([&] { flag.assign_add(Array(DType::kBool, {3}).view()); }),
            "[assign_add] 'flag' is bool, expected numbers");
  EXPECT_EQ(v.version(), version);
}

TEST(Variable, NoAdditionOfSeveralThreadsIsLost) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", Array(DType::kFloat64, {100}));
  Array ones(DType::kFloat64, {100});
  for (double& value : ones.as<double>()) value = 1.0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) v.assign_add(ones.view());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values_of(v.read()), std::vector<double>(100, 2000.0));
}

TEST(Variable, AssignChecksShapeAndDtype) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({3}, 1));
  const std::uint64_t version = v.version();
  EXPECT_EQ(message_of<ArgumentError>([&] { v.assign(array({2}, 1).view()); }),
            "[assign] the value is float32 of shape [2], expected float32 of shape [3] as 'v'");
  EXPECT_EQ(message_of<ArgumentError>([&] { v.assign(array({3}, 1, DType::kFloat64).view()); }),
            "[assign] the value is float64 of shape [3], expected float32 of shape [3] as 'v'");
  EXPECT_EQ(v.version(), version);
  v.assign(array({3}, 9).view());
  EXPECT_EQ(values_of(v.read()), values_of(Tensor(array({3}, 9).view())));
}

TEST(Variable, NamesAndRegistry) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable a("a", array({1}, 1));
  const VariableScope outer("outer");
  const Variable b("b", array({2}, 1), false);
  EXPECT_EQ(b.name(), "outer/b");
  EXPECT_EQ(graph.variables().size(), 2u);
  EXPECT_EQ(graph.trainable_variables().size(), 1u);
  EXPECT_TRUE(graph.variable("outer/b").same_as(b));
  EXPECT_TRUE(graph.has_variable("a"));
  EXPECT_EQ(message_of<ArgumentError>([&] { Variable("b", array({2}, 1)); }),
            "[Variable] 'outer/b' exists already, expected a new name");
  EXPECT_EQ(message_of<ArgumentError>([&] { graph.variable("b"); }),
            "[variable] name is 'b', expected one of the graph's 2 variables");
  EXPECT_EQ(message_of<StateError>([] { Variable().read(); }),
            "[Variable] the variable is empty, expected one that was made");
}

TEST(GetVariable, ReuseGivesTheSameVariable) {
  Graph graph;
  const Graph::AsDefault as_default(graph);
  Variable made;
  {
    const VariableScope scope("m");
    made = get_variable("w", {2, 3});
    EXPECT_EQ(message_of<ArgumentError>([] {
                get_variable("w", {2, 3});
              }),
              "[get_variable] 'm/w' exists already, expected a new name or a scope with reuse");
  }
  const VariableScope scope("m", true);
  EXPECT_TRUE(get_variable("w", {2, 3}).same_as(made));
  EXPECT_EQ(message_of<ArgumentError>([] {
              get_variable("w", {3, 2});
            }),
            "[get_variable] 'm/w' is asked for as float32 of shape [3, 2], expected float32 of "
            "shape [2, 3] as it exists");
  EXPECT_EQ(message_of<ArgumentError>([] { get_variable("x", {1}); }),
            "[get_variable] 'm/x' does not exist, expected one as the scope's reuse is set");
  const VariableScope inner("n");
  EXPECT_TRUE(VariableScope::current_reuse()) << "reuse holds for what lies inside";
}

TEST(GetVariable, EachNameHasItsRandomNumbersAndSeedsDecide) {
  const auto values = [](std::optional<std::uint64_t> seed, const std::string& name) {
    Graph graph;
    const Graph::AsDefault scope(graph);
    return values_of(get_variable(name, {3, 4}, {.seed = seed}).read());
  };
  EXPECT_EQ(values({}, "a"), values({}, "a"));
  EXPECT_NE(values({}, "a"), values({}, "b"));
  EXPECT_NE(values(1, "a"), values(2, "a"));
  EXPECT_EQ(values(2, "a"), values(2, "a"));
  for (const double value : values(5, "c")) EXPECT_LE(std::abs(value), std::sqrt(6.0 / 7.0));
}

TEST(Variable, IsRenamedInItsOwnGraphToANewName) {
  Graph graph, other;
  const Graph::AsDefault current(graph);
  const Variable v("v", array({2}, 1)), taken("taken", array({2}, 2));
  const std::string rest = "', expected a variable of the current graph and a new name";
  EXPECT_EQ(message_of<ArgumentError>([&] { v.rename("taken"); }), "[rename] 'v' to 'taken" + rest);
  {
    const Graph::AsDefault inside(other);
    EXPECT_EQ(message_of<ArgumentError>([&] { v.rename("new"); }), "[rename] 'v' to 'new" + rest);
    const Variable same("v", array({2}, 3));  // the other graph has a 'v' of its own
    EXPECT_THROW(v.rename("new"), ArgumentError);
    EXPECT_TRUE(other.variable("v").same_as(same));
    EXPECT_FALSE(other.has_variable("new"));
  }
  EXPECT_EQ(v.name(), "v");
  v.rename("m/new");
  EXPECT_EQ(v.name(), "m/new");
  EXPECT_TRUE(graph.variable("m/new").same_as(v));
  EXPECT_FALSE(graph.has_variable("v"));
  v.rename("m/new");  // its own
  const Variable again("v", array({2}, 4));
  EXPECT_TRUE(graph.variable("v").same_as(again));
}

// As many elements are not enough, and nothing is changed by what is refused.
TEST(Variable, EveryAssignmentRefusesAnotherShapeOfAsManyElements) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({2, 3}, 1));
  const std::vector<double> before = values_of(v.read());
  const std::uint64_t version = v.version();
  for (const Shape& shape : {Shape{3, 2}, Shape{6}, Shape{1, 2, 3}, Shape{2, 3, 1}}) {
    const Array host = array(shape, 2);
    const auto value = [&] { return DeviceArray::from_host(v.device(), host.view()); };
    const std::string rest = "] the value is float32 of shape " + to_string(shape) +
                             ", expected float32 of shape [2, 3] as 'v'";
    using Call = std::pair<std::string, std::function<void()>>;
    const std::vector<Call> calls{{"assign", [&] { v.assign(host.view()); }},
                                  {"assign", [&] { v.assign(value()); }},
                                  {"assign_add", [&] { v.assign_add(host.view()); }},
                                  {"assign_add", [&] { v.assign_add(value()); }},
                                  {"assign_sub", [&] { v.assign_sub(host.view()); }},
                                  {"assign_sub", [&] { v.assign_sub(value()); }}};
    for (const auto& [name, call] : calls) {
      EXPECT_EQ(message_of<ArgumentError>(call), "[" + name + rest);
    }
  }
  EXPECT_EQ(values_of(v.read()), before);
  EXPECT_EQ(v.version(), version);
  EXPECT_EQ(v.shape(), (Shape{2, 3}));
}

TEST(Variable, EveryChangeRaisesItsVersionByOne) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable v("v", array({3}, 1));
  EXPECT_EQ(v.version(), 1U);
  v.assign(array({3}, 2).view());
  EXPECT_EQ(v.version(), 2U);
  v.assign(DeviceArray::from_host(v.device(), array({3}, 3).view()));
  EXPECT_EQ(v.version(), 3U);
  v.assign_add(array({3}, 4).view());
  EXPECT_EQ(v.version(), 4U);
  v.assign_sub(array({3}, 4).view());
  EXPECT_EQ(v.version(), 5U);
  v.update([](void*) {});
  EXPECT_EQ(v.version(), 6U);
  EXPECT_THROW(v.update([](void*) { throw StateError("mine"); }), StateError);
  EXPECT_EQ(v.version(), 7U) << "one that throws may have written";
  EXPECT_EQ(v.read().version(), 7U);
}

TEST(GetVariable, OptionsAreThoseOfTheNewVariable) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable plain = get_variable("plain", {2});
  EXPECT_TRUE(plain.trainable() && plain.made_trainable());
  EXPECT_FALSE(plain.constraint());
  EXPECT_EQ(plain.dtype(), DType::kFloat32);
  EXPECT_TRUE(graph.regularization_losses().empty());
  const VariableOptions options{.dtype = DType::kFloat64,
                                .initializer = constant_initializer(1.5),
                                .trainable = false,
                                .regularizer = [](const Tensor& w) { return ops::reduce_sum(w); },
                                .constraint = [](const Tensor& w) { return ops::scale(w, 2.0); }};
  const Variable made = get_variable("made", {2, 3}, options);
  EXPECT_FALSE(made.trainable() || made.made_trainable());
  EXPECT_EQ(made.dtype(), DType::kFloat64);
  EXPECT_EQ(values_of(made.read()), std::vector<double>(6, 1.5));
  ASSERT_TRUE(made.constraint());
  EXPECT_EQ(values_of(made.constraint()(made.read())), std::vector<double>(6, 3.0));
  ASSERT_EQ(graph.regularization_losses().size(), 1U);
  EXPECT_EQ(graph.regularization_losses()[0].item(), 9.0);
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    const Variable whole = get_variable(std::string(dtype_name(dtype)), {3}, {.dtype = dtype});
    EXPECT_EQ(values_of(ops::cast(whole.read(), DType::kFloat64)), std::vector<double>(3, 0.0));
  }
  EXPECT_EQ(graph.variables().size(), 2U);
}

// The stream of a name is its hash (FNV-1a, 64 bits), so that files of numbers stay good.
TEST(GetVariable, StreamsAreHashesOfFullNames) {
  Graph graph;
  const Graph::AsDefault scope(graph);
  const auto expected = [](const std::string& name, std::uint64_t seed) {
    Hash hash;
    hash.add(name);
    Array values(DType::kFloat32, {3, 4});
    RandomStream random(seed, hash.value());
    glorot_uniform_initializer()(values.view(), random);
    return values_of(Tensor(values.view()));
  };
  const VariableScope outer("outer");
  const Variable unset = get_variable("w", {3, 4});
  EXPECT_EQ(values_of(unset.read()), expected("outer/w", 0));
  graph.set_seed(7);
  const Variable by_graph = get_variable("v/\xC3\xA9", {3, 4});
  EXPECT_EQ(values_of(by_graph.read()), expected("outer/v/\xC3\xA9", 7));
  const Variable by_option = get_variable("u", {3, 4}, {.seed = 9});
  EXPECT_EQ(values_of(by_option.read()), expected("outer/u", 9));
}

}  // namespace
}  // namespace openrnn::testing
