// Gradients, clipping and loss scaling around an optimizer; and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "openrnn/ops.h"
#include "openrnn/train_optimizer.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

DeviceArray array_of(std::vector<float> values) {
  return DeviceArray::from_host(
      default_device(),
      ConstArrayView{values.data(), DType::kFloat32, {static_cast<std::int64_t>(values.size())}});
}

Variable narrow_variable(const std::string& name, std::vector<float> values, DType dtype) {
  const Array wide =
      Array::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  return Variable(name, cast(wide.view(), dtype));
}

Variable half_variable(const std::string& name, std::vector<float> values) {
  return narrow_variable(name, std::move(values), DType::kFloat16);
}

TEST(Clip, ScalesAllByTheGlobalNorm) {
  std::vector<DeviceArray> gradients{array_of({3.0F, 0.0F}), DeviceArray(), array_of({-4.0F})};
  EXPECT_DOUBLE_EQ(clip_by_global_norm(gradients, 2.5), 5.0);
  EXPECT_FLOAT_EQ(gradients[0].to_host().as<float>()[0], 1.5F);
  EXPECT_TRUE(gradients[1].empty());
  EXPECT_FLOAT_EQ(gradients[2].to_host().as<float>()[0], -2.0F);
}

TEST(Clip, LeavesSmallGradientsAndSharedMemoryAlone) {
  const DeviceArray shared = array_of({3.0F, 4.0F});
  std::vector<DeviceArray> gradients{shared};
  EXPECT_DOUBLE_EQ(clip_by_global_norm(gradients, 6.0), 5.0);
  EXPECT_EQ(gradients[0].to_host().as<float>()[1], 4.0F);
  clip_by_global_norm(gradients, 1.0);
  EXPECT_EQ(shared.to_host().as<float>()[1], 4.0F);
}

TEST(Clip, RefusesWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<DeviceArray> gradients{array_of({1.0F, nan})};
  EXPECT_EQ(error_of<ArgumentError>([&] { clip_by_global_norm(gradients, 1.0); }),
            "[clip_by_global_norm] gradients with a global norm of nan, expected finite gradients");
  for (const auto& [norm, text] :
       {std::pair(0.0, "0"), {-2.5, "-2.5"}, {std::nan(""), "nan"}, {-HUGE_VAL, "-inf"}}) {
    EXPECT_EQ(
        error_of<ArgumentError>([&, norm = norm] { clip_by_global_norm(gradients, norm); }),
        std::string("[clip_by_global_norm] clip_norm ") + text + ", expected a number above 0");
  }
  EXPECT_EQ(gradients[0].to_host().as<float>()[0], 1.0F);
}

TEST(Minimize, FindsTheLeastSquare) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const std::vector<float> start{1.0F, -2.0F, 3.0F};
  const Variable w("w", Array::of<float>({3}, std::span<const float>(start)));
  GradientDescentOptimizer optimizer(0.1);
  for (int i = 0; i < 100; ++i) {
    const GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::square(w.read()));
    const StepResult result = optimizer.minimize(tape, loss, {w}, {}, 0.5);
    EXPECT_TRUE(result.applied());
    if (i == 0) {
      EXPECT_NEAR(result.gradient_norm(), 2.0 * std::sqrt(14.0), 1e-5);
    }
  }
  const Array least = w.to_host();
  for (const float x : least.as<float>()) EXPECT_NEAR(x, 0.0F, 1e-2);
}

TEST(Minimize, RefusesGradientsThatAreNotFinite) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const std::vector<float> start{1.0F, 200.0F};
  const Variable w("w", Array::of<float>({2}, std::span<const float>(start)));
  GradientDescentOptimizer optimizer(0.1);
  const GradientTape tape;
  const Tensor loss = ops::reduce_sum(ops::exp(w.read()));
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.minimize(tape, loss, {w}).values(); }),
            "[GradientDescentOptimizer] gradients with a global norm of inf at step 0, expected "
            "finite ones (a lower learning rate may help)");
  EXPECT_EQ(w.to_host().as<float>()[0], 1.0F);
}

void set_good_steps(const Graph& graph, std::int64_t steps) {
  graph.variable("loss_scale_good_steps").assign(ConstArrayView{&steps, DType::kInt64, {}});
}

std::int64_t good_steps(const Graph& graph) {
  return graph.variable("loss_scale_good_steps").to_host().as<std::int64_t>()[0];
}

void set_loss_scale(const Graph& graph, float scale) {
  graph.variable("loss_scale").assign(ConstArrayView{&scale, DType::kFloat32, {}});
}

TEST(LossScale, SkipsHalvesAndStartsCountingAgain) {
  Graph graph;
  const Graph::AsDefault current(graph);
  // Its gradient times 2^15 is beyond float16 and times 2^13 is not.
  const Variable w = half_variable("w", {1.0F, 0.5F});
  const Variable step = get_or_create_global_step();
  GradientDescentOptimizer optimizer(0.125);
  optimizer.prepare({w});
  set_good_steps(graph, 1998);
  std::vector<bool> applied;
  for (int i = 0; i < 4; ++i) {
    const GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::cast(ops::scale(w.read(), 4.0), DType::kFloat32));
    applied.push_back(optimizer.minimize(tape, loss, {w}, step).applied());
    EXPECT_EQ(to_float(w.to_host().as<Half>()[0]),
              i < 2 ? 1.0F : 1.5F - 0.5F * static_cast<float>(i));
  }
  EXPECT_EQ(applied, (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(optimizer.loss_scale(), 8192.0);
  EXPECT_EQ(good_steps(graph), 2);
  EXPECT_EQ(step.to_host().as<std::int64_t>()[0], 4);
  EXPECT_EQ(to_float(w.to_host().as<Half>()[0]), 0.0F);
}

TEST(LossScale, DoublesAfterTwoThousandGoodSteps) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = half_variable("w", {0.25F});
  GradientDescentOptimizer optimizer(0.0);
  EXPECT_EQ(optimizer.loss_scale(), 1.0);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(optimizer.loss_scale(), i == 0 ? 1.0 : 32768.0);
    const GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::cast(w.read(), DType::kFloat32));
    ASSERT_TRUE(optimizer.minimize(tape, loss, {w}).applied());
  }
  EXPECT_EQ(optimizer.loss_scale(), 65536.0);
}

TEST(LossScale, StartsCountingAgainAfterEachDoubling) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = half_variable("w", {0.25F});
  GradientDescentOptimizer optimizer(0.0);
  optimizer.prepare({w});
  set_good_steps(graph, 1999);
  const auto step = [&] {
    const GradientTape tape;
    const Tensor loss = ops::scale(ops::reduce_sum(ops::cast(w.read(), DType::kFloat32)), 0x1p-20);
    EXPECT_TRUE(optimizer.minimize(tape, loss, {w}).applied());
  };
  step();
  EXPECT_EQ(optimizer.loss_scale(), 65536.0);
  EXPECT_EQ(good_steps(graph), 0);
  step();
  EXPECT_EQ(optimizer.loss_scale(), 65536.0);
  EXPECT_EQ(good_steps(graph), 1);
  // At its cap it stays, and so does the end of the count.
  set_loss_scale(graph, 16777216.0F);
  set_good_steps(graph, 1999);
  step();
  EXPECT_EQ(optimizer.loss_scale(), 16777216.0);
  EXPECT_EQ(good_steps(graph), 0);
  set_loss_scale(graph, 8388608.0F);
  set_good_steps(graph, 1999);
  step();
  EXPECT_EQ(optimizer.loss_scale(), 16777216.0);
}

TEST(LossScale, EndsAtItsLeastWithAnError) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = half_variable("w", {1.0F});
  GradientDescentOptimizer optimizer(0.1);
  optimizer.prepare({w});
  set_loss_scale(graph, 0x1p-15F);
  const auto step = [&] {
    const GradientTape tape;
    const Tensor wide = ops::cast(w.read(), DType::kFloat32);
    const Tensor huge = ops::scale(ops::exp(ops::scale(wide, 80.0)), 1e10);  // infinite
    return optimizer.minimize(tape, ops::reduce_sum(huge), {w}).applied();
  };
  EXPECT_FALSE(step());
  EXPECT_EQ(optimizer.loss_scale(), 0x1p-16);
  EXPECT_NE(error_of<ArgumentError>(step).find("expected finite ones"), std::string::npos);
}

TEST(LossScale, KeepsGradientsThatFloat16WouldLose) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = half_variable("w", {1.0F});
  GradientDescentOptimizer optimizer(1.0);
  const GradientTape tape;
  // d loss / d w = 2^-26, below the smallest float16.
  const Tensor loss = ops::scale(ops::reduce_sum(ops::cast(w.read(), DType::kFloat32)), 0x1p-26);
  const std::vector<DeviceArray> gradients = optimizer.compute_gradients(tape, loss, {w});
  EXPECT_EQ(gradients[0].to_host().as<float>()[0], 0x1p-26F);
}

// float16 would lose 2^-100 and be infinite at 2^100.
TEST(LossScale, IsNotForBfloat16) {
  if (default_device().engine()) GTEST_SKIP() << "bfloat16 is of processors";
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = narrow_variable("w", {1.0F, 0.5F}, DType::kBfloat16);
  GradientDescentOptimizer optimizer(0x1p-101);
  const auto step = [&](double factor) {
    const GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::scale(w.read(), factor));
    EXPECT_EQ(loss.dtype(), DType::kFloat32);
    const auto gradients = optimizer.compute_gradients(tape, loss, {w});
    EXPECT_EQ(gradients[0].dtype(), DType::kFloat32);
    EXPECT_EQ(gradients[0].to_host().as<float>()[1], static_cast<float>(factor));
    return optimizer.clip_and_apply(gradients, {w}).applied();
  };
  EXPECT_TRUE(step(0x1p-100));
  EXPECT_TRUE(step(0x1p100));
  EXPECT_EQ(optimizer.loss_scale(), 1.0);
  EXPECT_FALSE(graph.has_variable("loss_scale"));
  EXPECT_EQ(to_float(w.to_host().as<Bfloat16>()[0]), 0.5F);
  EXPECT_EQ(to_float(w.to_host().as<Bfloat16>()[1]), 0.0F);
  // A gradient that is not finite is an error, as in float32.
  EXPECT_NE(error_of<ArgumentError>([&] { step(HUGE_VAL); }).find("expected finite ones"),
            std::string::npos);
}

// Of a graph with both, the loss of bfloat16 is scaled with that of float16.
TEST(LossScale, IsTakenOffEveryGradient) {
  if (default_device().engine()) GTEST_SKIP() << "bfloat16 is of processors";
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable half = half_variable("half", {1.0F});
  const Variable brain = narrow_variable("brain", {1.0F}, DType::kBfloat16);
  GradientDescentOptimizer optimizer(1.0);
  const GradientTape tape;
  const Tensor loss = ops::reshape(
      ops::add(ops::cast(half.read(), DType::kBfloat16), ops::scale(brain.read(), 3.0)), {});
  EXPECT_EQ(loss.dtype(), DType::kBfloat16);
  const auto gradients = optimizer.compute_gradients(tape, loss, {half, brain});
  EXPECT_EQ(optimizer.loss_scale(), 32768.0);
  EXPECT_EQ(gradients[0].to_host().as<float>()[0], 1.0F);
  EXPECT_EQ(gradients[1].to_host().as<float>()[0], 3.0F);
}

TEST(Optimizer, RefusesBadArguments) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error_of<ArgumentError>([&] { GradientDescentOptimizer optimizer(infinity); }),
            "[GradientDescentOptimizer] learning_rate inf, expected a finite number of at least 0");
  EXPECT_NE(error_of<ArgumentError>([] { AdamOptimizer optimizer(0.1, 1.0); }), "");
  for (const double momentum : {-0.5, 1.0}) {
    const std::string given = momentum < 0.0 ? "-0.5" : "1";
    EXPECT_EQ(error_of<ArgumentError>([&] { MomentumOptimizer optimizer(0.1, momentum); }),
              "[MomentumOptimizer] momentum " + given + ", expected 0 to below 1");
    EXPECT_EQ(error_of<ArgumentError>([&] { RMSPropOptimizer optimizer(0.1, 0.9, momentum); }),
              "[RMSPropOptimizer] momentum " + given + ", expected 0 to below 1");
  }
  EXPECT_EQ(error_of<ArgumentError>([] { MomentumOptimizer optimizer(0.1, 0.0); }), "");
  EXPECT_NE(error_of<ArgumentError>([] { AdagradOptimizer optimizer(0.1, 0.0); }), "");
  EXPECT_NE(error_of<ArgumentError>([] { RMSPropOptimizer optimizer(0.1, 1.5); }), "");
  EXPECT_EQ(error_of<ArgumentError>([] { make_optimizer("lion", 0.1); }),
            "[make_optimizer] 'lion', expected one of sgd, momentum, nesterov, adagrad, rmsprop, "
            "adam");
  for (const std::string_view name : optimizer_names()) {
    EXPECT_EQ(make_optimizer(name, 0.25)->learning_rate(), 0.25) << name;
  }
}

TEST(Optimizer, TakesTheEndsOfItsBounds) {
  const auto error = [](auto make) { return error_of<ArgumentError>(make); };
  const auto sgd = [](double rate) { GradientDescentOptimizer optimizer(rate); };
  EXPECT_EQ(error([&] { sgd(0.0); }), "");
  EXPECT_EQ(error([&] { sgd(-1e-300); }),
            "[GradientDescentOptimizer] learning_rate -1e-300, expected a finite number of at "
            "least 0");
  const auto adam = [](double beta1, double beta2, double epsilon) {
    AdamOptimizer optimizer(0.1, beta1, beta2, epsilon);
  };
  EXPECT_EQ(error([&] { adam(0.0, 0.0, 0.0); }), "");
  EXPECT_EQ(error([&] { adam(-0.5, 0.5, 0.0); }),
            "[AdamOptimizer] beta1 -0.5, expected 0 to below 1");
  EXPECT_EQ(error([&] { adam(0.5, -0.5, 0.0); }),
            "[AdamOptimizer] beta2 -0.5, expected 0 to below 1");
  // As a float32, in which the powers are, it is 1.
  EXPECT_EQ(error([&] { adam(1.0 - 1e-12, 0.5, 0.0); }),
            "[AdamOptimizer] beta1 1, expected 0 to below 1");
  EXPECT_EQ(error([&] { adam(0.5, 1.0 - 1e-12, 0.0); }),
            "[AdamOptimizer] beta2 1, expected 0 to below 1");
  EXPECT_EQ(error([&] { adam(0.5, 0.5, -1.0); }),
            "[AdamOptimizer] epsilon -1, expected at least 0");
  const auto rmsprop = [](double decay, double epsilon) {
    RMSPropOptimizer optimizer(0.1, decay, 0.0, epsilon);
  };
  EXPECT_EQ(error([&] { rmsprop(0.0, 0.0); }), "");
  EXPECT_EQ(error([&] { rmsprop(1.0, 0.0); }), "");
  EXPECT_EQ(error([&] { rmsprop(-0.5, 0.0); }), "[RMSPropOptimizer] decay -0.5, expected 0 to 1");
  EXPECT_EQ(error([&] { rmsprop(0.5, -1.0); }),
            "[RMSPropOptimizer] epsilon -1, expected at least 0");
  EXPECT_EQ(error([] { AdagradOptimizer optimizer(0.1, 1e-300); }), "");
  EXPECT_EQ(error([] { AdagradOptimizer optimizer(0.1, 0.0); }),
            "[AdagradOptimizer] initial_accumulator_value 0, expected a number above 0");
  EXPECT_EQ(error([] { AdagradOptimizer optimizer(0.1, HUGE_VAL); }),
            "[AdagradOptimizer] initial_accumulator_value inf, expected a number above 0");
}

// Every option of every optimizer: no comparison with NaN may let it through.
TEST(Optimizer, NoOptionIsNotANumber) {
  const double nan = std::nan("");
  const std::tuple<std::function<void()>, const char*, const char*> cases[] = {
      {[=] { MomentumOptimizer(0.1, nan); }, "Momentum", "momentum nan, expected 0 to below 1"},
      {[=] { AdagradOptimizer(0.1, nan); }, "Adagrad",
       "initial_accumulator_value nan, expected a number above 0"},
      {[=] { RMSPropOptimizer(0.1, nan, 0.0, 0.0); }, "RMSProp", "decay nan, expected 0 to 1"},
      {[=] { RMSPropOptimizer(0.1, 0.5, nan, 0.0); }, "RMSProp",
       "momentum nan, expected 0 to below 1"},
      {[=] { RMSPropOptimizer(0.1, 0.5, 0.0, nan); }, "RMSProp",
       "epsilon nan, expected at least 0"},
      {[=] { AdamOptimizer(0.1, nan, 0.5, 0.0); }, "Adam", "beta1 nan, expected 0 to below 1"},
      {[=] { AdamOptimizer(0.1, 0.5, nan, 0.0); }, "Adam", "beta2 nan, expected 0 to below 1"},
      {[=] { AdamOptimizer(0.1, 0.5, 0.5, nan); }, "Adam", "epsilon nan, expected at least 0"},
      {[=] { AdamWOptimizer(0.1, nan, 0.5, 0.0, 0.0); }, "AdamW",
       "beta1 nan, expected 0 to below 1"},
      {[=] { AdamWOptimizer(0.1, 0.5, nan, 0.0, 0.0); }, "AdamW",
       "beta2 nan, expected 0 to below 1"},
      {[=] { AdamWOptimizer(0.1, 0.5, 0.5, nan, 0.0); }, "AdamW",
       "epsilon nan, expected a finite number of at least 0"},
      {[=] { AdamWOptimizer(0.1, 0.5, 0.5, 0.0, nan); }, "AdamW",
       "weight_decay nan, expected a finite number of at least 0"},
      {[=] { AdamOptimizer optimizer(nan); }, "Adam",
       "learning_rate nan, expected a finite number of at least 0"},
  };
  for (const auto& [make, name, said] : cases) {
    EXPECT_EQ(error_of<ArgumentError>(make), std::string("[") + name + "Optimizer] " + said);
  }
}

TEST(Optimizer, AdamWTakesTheEndsOfItsBounds) {
  const auto error = [](double beta1, double beta2, double epsilon, double decay) {
    return error_of<ArgumentError>(
        [&] { AdamWOptimizer optimizer(0.1, beta1, beta2, epsilon, decay); });
  };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error(0.0, 0.0, 0.0, 0.0), "");
  // Its powers are computed in double.
  EXPECT_EQ(error(1.0 - 1e-12, 1.0 - 1e-12, 1.0, 10.0), "");
  EXPECT_EQ(error(1.0, 0.5, 0.0, 0.0), "[AdamWOptimizer] beta1 1, expected 0 to below 1");
  EXPECT_EQ(error(0.5, 1.0, 0.0, 0.0), "[AdamWOptimizer] beta2 1, expected 0 to below 1");
  for (const double bad : {-1.0, infinity, std::nan("")}) {
    EXPECT_TRUE(error(0.5, 0.5, bad, 0.0).starts_with("[AdamWOptimizer] epsilon ")) << bad;
    EXPECT_TRUE(error(0.5, 0.5, 0.0, bad).starts_with("[AdamWOptimizer] weight_decay ")) << bad;
  }
}

// Slots and errors are named after it.
TEST(Optimizer, AdamWWithoutDecayIsNamedAdam) {
  for (const double decay : {0.0, 0.01}) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable w("w", Array(DType::kFloat32, {3}));
    AdamWOptimizer optimizer(0.1, 0.9, 0.99, 1e-8, decay);
    const std::string name = decay > 0.0 ? "AdamW" : "Adam";
    EXPECT_EQ(optimizer.name(), name);
    optimizer.prepare({w});
    EXPECT_EQ(optimizer.slots(w).at(0).name(), "w/" + name);
  }
}

TEST(Optimizer, ConstrainsOnlyWhatHasAGradient) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable moved("moved", Array(DType::kFloat32, {3}));
  const Variable still("still", Array(DType::kFloat32, {3}));
  int calls = 0;
  const auto constraint = [&](const Tensor& value) {
    ++calls;
    return ops::add(value, Tensor(Array::of<float>({1}, {{1.0F}}).view()));
  };
  moved.set_constraint(constraint);
  still.set_constraint(constraint);
  GradientDescentOptimizer optimizer(1.0);
  optimizer.apply_gradients({array_of({-1.0F, 2.0F, 0.0F}), DeviceArray()}, {moved, still});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(moved.to_host().as<float>()[0], 2.0F);
  EXPECT_EQ(still.to_host().as<float>()[0], 0.0F);
}

TEST(Optimizer, CountsOnFromWhatTheGlobalStepWasSetTo) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", Array(DType::kFloat32, {3}));
  const Variable global_step = get_or_create_global_step();
  GradientDescentOptimizer optimizer(1.0);
  const auto step = [&] {
    optimizer.apply_gradients({array_of({1.0F, 2.0F, 3.0F})}, {w}, global_step);
    return global_step.to_host().as<std::int64_t>()[0];
  };
  EXPECT_EQ(step(), 1);
  EXPECT_EQ(step(), 2);
  const std::int64_t other = 70;
  global_step.assign(ConstArrayView{&other, DType::kInt64, {}});
  EXPECT_EQ(step(), 71);
  EXPECT_EQ(step(), 72);
}

// A name stands for a class and these numbers.
TEST(Optimizer, NamesAreThoseOfTheirRules) {
  const auto trained = [](Optimizer& optimizer) {
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable w("w", Array(DType::kFloat32, {3}));
    for (const float scale : {1.0F, -0.25F, 2.0F}) {
      optimizer.apply_gradients({array_of({scale, 0.5F, -3.0F * scale})}, {w});
    }
    const Array values = w.to_host();
    const auto elements = values.as<float>();
    return std::vector<float>(elements.begin(), elements.end());
  };
  std::map<std::string_view, std::unique_ptr<Optimizer>> rules;
  rules["sgd"] = std::make_unique<GradientDescentOptimizer>(0.25);
  rules["momentum"] = std::make_unique<MomentumOptimizer>(0.25, 0.9, false);
  rules["nesterov"] = std::make_unique<MomentumOptimizer>(0.25, 0.9, true);
  rules["adagrad"] = std::make_unique<AdagradOptimizer>(0.25, 0.1);
  rules["rmsprop"] = std::make_unique<RMSPropOptimizer>(0.25, 0.9, 0.0, 1e-10, false);
  rules["adam"] = std::make_unique<AdamOptimizer>(0.25, 0.9, 0.999, 1e-8);
  ASSERT_EQ(rules.size(), optimizer_names().size());
  std::set<std::vector<float>> different;
  for (const std::string_view name : optimizer_names()) {
    const std::vector<float> found = trained(*make_optimizer(name, 0.25));
    EXPECT_EQ(found, trained(*rules.at(name))) << name;
    different.insert(found);
  }
  EXPECT_EQ(different.size(), rules.size());
}

TEST(Optimizer, RefusesGradientsThatDoNotFit) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", Array(DType::kFloat32, {2}));
  GradientDescentOptimizer optimizer(0.1);
  EXPECT_EQ(error_of<ArgumentError>([&] {
              optimizer.apply_gradients({array_of({1, 2, 3})}, {w});
            }),
            "[GradientDescentOptimizer] a gradient of float32 [3] for 'w', expected float32 [2]");
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.apply_gradients({}, {w}); }),
            "[GradientDescentOptimizer] 0 gradients, expected 1, one for each variable");
  const DeviceArray narrow = DeviceArray::zeros(default_device(), DType::kFloat64, {2});
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.apply_gradients({narrow}, {w}); }),
            "[GradientDescentOptimizer] a gradient of float64 [2] for 'w', expected float32 [2]");
  const Variable v("v", Array(DType::kFloat32, {2}));
  EXPECT_EQ(error_of<ArgumentError>([&] {
              optimizer.apply_gradients({DeviceArray(), DeviceArray()}, {v, w});
            }),
            "[GradientDescentOptimizer] no gradients for any of 2 variables, of which the first is "
            "'v', expected a loss that depends on one");
  EXPECT_NO_THROW(optimizer.apply_gradients({}, {}));
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.slots(v); }),
            "[GradientDescentOptimizer] slots of 'v', expected a variable that was prepared or "
            "updated");
  const Variable count("count", Array(DType::kInt64, {2}));
  for (const bool scale : {true, false}) {
    EXPECT_EQ(error_of<ArgumentError>(
                  [&] { scale ? optimizer.prepare_scale({count}) : optimizer.prepare({count}); }),
              "[GradientDescentOptimizer] variable 'count' of int64, expected a floating dtype");
  }
}

}  // namespace
}  // namespace openrnn::train
