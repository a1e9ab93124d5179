// The optimizers against their formulas in plain doubles, over many steps.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "openrnn/ops.h"
#include "openrnn/train_optimizer.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

constexpr int kSteps = 60;
constexpr std::int64_t kSize = 37;

/// One element's plain rule: takes its gradient, changes w.
using Rule = std::function<void(double& w, double g, std::vector<double>& slots, int t)>;

double gradient_at(int step, std::int64_t i) {
  return std::sin(0.7 * step + 0.31 * static_cast<double>(i)) *
         (1.0 + 0.1 * static_cast<double>(i));
}

Array start_values(DType dtype) {
  Array values(DType::kFloat64, {kSize});
  for (std::int64_t i = 0; i < kSize; ++i) {
    values.as<double>()[static_cast<std::size_t>(i)] = 0.5 - 0.03 * static_cast<double>(i);
  }
  return cast(values.view(), dtype);
}

DeviceArray gradient_array(int step, DType dtype) {
  Array values(DType::kFloat64, {kSize});
  for (std::int64_t i = 0; i < kSize; ++i) {
    values.as<double>()[static_cast<std::size_t>(i)] = gradient_at(step, i);
  }
  return DeviceArray::from_host(default_device(), cast(values.view(), dtype).view());
}

struct Case {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  std::vector<double> slots;
  Rule rule;
};

// An epsilon that tells where it is added: to the root without its bias.
Case adam_w_case(double lr) {
  return {"AdamW",
          [=] { return std::make_unique<AdamWOptimizer>(lr, 0.875, 0.96875, 0.25, 0.125); },
          {0.0, 0.0},
          [=](double& w, double g, auto& s, int t) {
            s[0] = 0.875 * s[0] + 0.125 * g;
            s[1] = 0.96875 * s[1] + 0.03125 * g * g;
            w -= lr * 0.125 * w;
            w -= lr * s[0] / (1.0 - std::pow(0.875, t)) /
                 (std::sqrt(s[1] / (1.0 - std::pow(0.96875, t))) + 0.25);
          }};
}

std::vector<Case> cases() {
  const double lr = 0.03;
  return {
      {"GradientDescent",
       [=] { return std::make_unique<GradientDescentOptimizer>(lr); },
       {},
       [=](double& w, double g, auto&, int) { w -= lr * g; }},
      {"Momentum",
       [=] { return std::make_unique<MomentumOptimizer>(lr, 0.8); },
       {0.0},
       [=](double& w, double g, auto& s, int) {
         s[0] = 0.8 * s[0] + g;
         w -= lr * s[0];
       }},
      {"Momentum",
       [=] { return std::make_unique<MomentumOptimizer>(lr, 0.8, true); },
       {0.0},
       [=](double& w, double g, auto& s, int) {
         s[0] = 0.8 * s[0] + g;
         w -= lr * g + lr * 0.8 * s[0];
       }},
      {"Adagrad",
       [=] { return std::make_unique<AdagradOptimizer>(lr, 0.2); },
       {0.2},
       [=](double& w, double g, auto& s, int) {
         s[0] += g * g;
         w -= lr * g / std::sqrt(s[0]);
       }},
      {"RMSProp",
       [=] { return std::make_unique<RMSPropOptimizer>(lr, 0.95, 0.5, 1e-4); },
       {1.0, 0.0},
       [=](double& w, double g, auto& s, int) {
         s[0] = 0.95 * s[0] + 0.05 * g * g;
         s[1] = 0.5 * s[1] + lr * g / std::sqrt(s[0] + 1e-4);
         w -= s[1];
       }},
      {"RMSProp",
       [=] { return std::make_unique<RMSPropOptimizer>(lr, 0.95, 0.5, 1e-4, true); },
       {1.0, 0.0, 0.0},
       [=](double& w, double g, auto& s, int) {
         s[0] = 0.95 * s[0] + 0.05 * g * g;
         s[1] = 0.95 * s[1] + 0.05 * g;
         s[2] = 0.5 * s[2] + lr * g / std::sqrt(s[0] - s[1] * s[1] + 1e-4);
         w -= s[2];
       }},
      {"Adam",
       [=] { return std::make_unique<AdamOptimizer>(lr, 0.875, 0.96875, 1e-6); },
       {0.0, 0.0},
       [=](double& w, double g, auto& s, int t) {
         s[0] = 0.875 * s[0] + 0.125 * g;
         s[1] = 0.96875 * s[1] + 0.03125 * g * g;
         const double rate =
             lr * std::sqrt(1.0 - std::pow(0.96875, t)) / (1.0 - std::pow(0.875, t));
         w -= rate * s[0] / (std::sqrt(s[1]) + 1e-6);
       }},
      adam_w_case(lr),
  };
}

void check_against_rule(const Case& one, DType dtype, double tolerance) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Array start = start_values(dtype);
  const Variable variable("w", start);
  const Variable global_step = get_or_create_global_step();
  const auto optimizer = one.make();
  const DType gradient_dtype = compute_dtype(dtype);
  std::vector<double> w;
  std::vector<std::vector<double>> slots(kSize, one.slots);
  for (std::int64_t i = 0; i < kSize; ++i) w.push_back(element(start.view(), i));
  for (int step = 0; step < kSteps; ++step) {
    optimizer->apply_gradients({gradient_array(step, gradient_dtype)}, {variable}, global_step);
    for (std::size_t i = 0; i < kSize; ++i) {
      one.rule(w[i], gradient_at(step, static_cast<std::int64_t>(i)), slots[i], step + 1);
    }
  }
  EXPECT_EQ(optimizer->name(), one.name);
  EXPECT_EQ(global_step.to_host().as<std::int64_t>()[0], kSteps);
  const std::vector<Variable> kept = optimizer->slots(variable);
  ASSERT_EQ(kept.size(), one.slots.size());
  for (std::size_t s = 0; s < kept.size(); ++s) {
    EXPECT_EQ(kept[s].name(), "w/" + one.name + (s == 0 ? "" : "_" + std::to_string(s)));
    EXPECT_EQ(kept[s].dtype(), gradient_dtype);
    EXPECT_FALSE(kept[s].trainable());
  }
  const Array result = variable.to_host();
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_NEAR(element(result.view(), static_cast<std::int64_t>(i)), w[i],
                tolerance * (1.0 + std::fabs(w[i])))
        << one.name << " " << i;
  }
}

TEST(Optimizer, FollowsItsFormulaInFloat64) {
  // The betas of the Adam case are exact in float32, but their powers are kept in float32.
  for (const Case& one : cases()) {
    check_against_rule(one, DType::kFloat64, one.name == "Adam" ? 1e-5 : 1e-13);
  }
}

TEST(Optimizer, FollowsItsFormulaInFloat32) {
  for (const Case& one : cases()) check_against_rule(one, DType::kFloat32, 2e-5);
}

TEST(Optimizer, UpdatesFloat16ThroughItsMasterCopy) {
  // Half an ulp of float16 at 1, and not the sum of 60 roundings.
  for (const Case& one : cases()) check_against_rule(one, DType::kFloat16, 0x1p-11 + 2e-5);
}

TEST(Optimizer, UpdatesBfloat16ThroughItsMasterCopy) {
  if (default_device().engine()) GTEST_SKIP() << "bfloat16 is of processors";
  for (const Case& one : cases()) check_against_rule(one, DType::kBfloat16, 0x1p-8 + 2e-5);
}

TEST(Optimizer, SmallStepsAddUpInTheMasterCopy) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Half one = to_half(1.0F);
  const Variable variable("w", Array::of<Half>({1}, std::span<const Half>(&one, 1)));
  GradientDescentOptimizer optimizer(1e-5);
  const float gradient = 1.0F;
  for (int step = 0; step < 1000; ++step) {
    optimizer.apply_gradients(
        {DeviceArray::from_host(default_device(), ConstArrayView{&gradient, DType::kFloat32, {1}})},
        {variable});
  }
  EXPECT_NEAR(to_float(variable.to_host().as<Half>()[0]), 0.99, 1e-3);
  EXPECT_NEAR(graph.variable("w/master").to_host().as<float>()[0], 0.99, 1000 * 0x1p-25);
}

TEST(Optimizer, AMasterCopyFollowsAnAssignment) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable variable("w", Array(DType::kFloat16, {1}));
  GradientDescentOptimizer optimizer(0.5);
  optimizer.prepare({variable});
  const Half three = to_half(3.0F);
  variable.assign(ConstArrayView{&three, DType::kFloat16, {1}});
  const float gradient = 2.0F;
  optimizer.apply_gradients(
      {DeviceArray::from_host(default_device(), ConstArrayView{&gradient, DType::kFloat32, {1}})},
      {variable});
  EXPECT_EQ(to_float(variable.to_host().as<Half>()[0]), 2.0F);
}

TEST(Optimizer, AdamKeepsItsPowers) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable variable("w", start_values(DType::kFloat32));
  AdamOptimizer optimizer;
  optimizer.prepare({variable});
  EXPECT_EQ(graph.variable("beta1_power").to_host().as<float>()[0], 0.9F);
  EXPECT_EQ(graph.variable("beta2_power").to_host().as<float>()[0], 0.999F);
  optimizer.apply_gradients({gradient_array(0, DType::kFloat32)}, {variable});
  EXPECT_EQ(graph.variable("beta1_power").to_host().as<float>()[0], 0.9F * 0.9F);
  EXPECT_EQ(graph.variable("beta2_power").to_host().as<float>()[0], 0.999F * 0.999F);
}

// Of a variable's slots those of a second optimizer are numbered on, and so are scalars.
TEST(Optimizer, NamesWhatItKeepsAsItsOwn) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", start_values(DType::kFloat16));
  AdamOptimizer first, second;
  MomentumOptimizer third(0.1, 0.9);
  first.prepare({w});
  first.prepare({w});
  second.prepare({w});
  third.prepare({w});
  std::vector<std::string> names;
  for (const Variable& variable : graph.variables()) {
    names.push_back(variable.name());
    EXPECT_EQ(variable.trainable(), variable.name() == "w") << variable.name();
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "w", "beta1_power", "beta2_power", "loss_scale", "loss_scale_good_steps",
                "w/master", "w/Adam", "w/Adam_1", "beta1_power_1", "beta2_power_1", "loss_scale_1",
                "loss_scale_good_steps_1", "w/master_1", "w/Adam_2", "w/Adam_3", "loss_scale_2",
                "loss_scale_good_steps_2", "w/master_2", "w/Momentum"}));
}

TEST(Optimizer, TheGlobalStepIsOneOfTheGraph) {
  Graph graph;
  const Graph::AsDefault current(graph);
  get_or_create_global_step();
  ASSERT_TRUE(graph.has_variable("global_step")) << "nobody holds it";
  EXPECT_TRUE(get_or_create_global_step().same_as(graph.variable("global_step")));
  EXPECT_EQ(get_or_create_global_step().dtype(), DType::kInt64);
  EXPECT_FALSE(get_or_create_global_step().trainable());
  EXPECT_EQ(graph.variables().size(), 1U);
}

// Also where nobody counts the steps.
TEST(Optimizer, ErrorsSayTheStep) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", Array(DType::kFloat32, {1}));
  const Variable global_step = get_or_create_global_step();
  GradientDescentOptimizer optimizer(0.5);
  const auto step = [&](double factor, const Variable& counter) {
    return error_of<ArgumentError>([&] {
      GradientTape tape;
      const Tensor loss = ops::reduce_sum(ops::scale(w.read(), factor));
      tape.close();
      optimizer.minimize(tape, loss, {w}, counter).values();
      optimizer.finish();
    });
  };
  const auto refused = [](const char* step) {
    return "[GradientDescentOptimizer] gradients with a global norm of inf at step " +
           std::string(step) + ", expected finite ones (a lower learning rate may help)";
  };
  EXPECT_EQ(step(1.0, {}), "");
  EXPECT_EQ(step(1.0, {}), "");
  EXPECT_EQ(step(HUGE_VAL, {}), refused("2"));
  const std::int64_t other = 70;
  global_step.assign(ConstArrayView{&other, DType::kInt64, {}});
  EXPECT_EQ(step(HUGE_VAL, global_step), refused("70"));
  EXPECT_EQ(step(1.0, global_step), "");
  EXPECT_EQ(step(HUGE_VAL, global_step), refused("71"));
}

}  // namespace
}  // namespace openrnn::train
