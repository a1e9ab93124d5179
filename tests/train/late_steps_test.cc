// Steps that a GPU decides on: what the host waits for, and what it is told when. On the cpu, where
// nothing is late, the same runs give what they are compared with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "cpu/device/cpu_device.h"
#include "cudnn/calls/counted.h"
#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "support/setting.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

bool late() { return default_device().engine() != nullptr; }

/// Waits of the host for the GPU so far, and those after which the GPU had nothing left to do.
struct GpuWaits {
  long all = 0, idle = 0;
};

/// Empty where no stand-in of the driver counts them.
std::optional<GpuWaits> gpu_waits() {
  using openrnn::testing::stand_in_count;
  if (!late() || !stand_in_count("stand_in_waits")) return std::nullopt;
  return GpuWaits{*stand_in_count("stand_in_waits"), *stand_in_count("stand_in_idle_waits")};
}

Variable variable_of(const std::string& name, std::vector<float> values,
                     DType dtype = DType::kFloat32, const Device* device = nullptr) {
  const Array wide =
      Array::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  return Variable(name, cast(wide.view(), dtype), true, device);
}

Text small_text() {
  const char* const words[] = {"one ", "two ", "three, ", "four\n", "five ", "six; "};
  return text_of_words(words, 1200, 200);
}

/// A language model in training in a graph of its own.
struct TextTrial {
  TextTrial(DType dtype, std::int64_t steps) : current(graph), text(small_text()) {
    ModelConfig config;
    config.network.num_layers = 2;
    config.network.num_units = 7;
    config.embedding = 5;
    config.vocabulary = config.outputs = text.vocabulary.size();
    config.network.training.dropout = 0.3;
    config.network.dtype = dtype;
    config.network.training.seed = 11;
    model = std::make_unique<SequenceModel>(config);
    task = std::make_unique<TextTask>(*model, text, TextTask::Options{.batch = 3, .seq_len = 17});
    FitOptions options;
    options.steps = steps;
    options.clip_norm = 0.5;
    fit = std::make_unique<Fit>(*task, optimizer, options);
  }
  Graph graph;
  Graph::AsDefault current;
  Text text;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<TextTask> task;
  AdamOptimizer optimizer{0.01};
  std::unique_ptr<Fit> fit;
};

/// The loss is factor * sum(w), the factor that of the step: its gradients are known.
class ScriptedTask : public Task {
 public:
  ScriptedTask(std::vector<double> factors, DType dtype)
      : factors_(std::move(factors)), weight_(variable_of("w", {1.0F, 0.5F, 2.0F}, dtype)) {}
  std::int64_t windows() const override { return 1000; }
  Tensor loss(const DataPosition& position) override {
    const double factor = factors_.at(static_cast<std::size_t>(position.window));
    const Tensor scaled = ops::scale(weight_.read(), factor);
    return ops::reduce_sum(ops::cast(scaled, DType::kFloat32));
  }
  std::int64_t items(const DataPosition&) const override { return 1; }
  double metric(double loss) const override { return loss; }
  std::string_view metric_name() const override { return "loss"; }
  double validate(bool) override { return 1.0; }
  std::vector<Variable> variables() const override { return {weight_}; }
  void save(Extras&) const override {}
  void load(const Extras&) override {}

 private:
  std::vector<double> factors_;
  Variable weight_;
};

struct ScriptedTrial {
  explicit ScriptedTrial(std::vector<double> factors, DType dtype = DType::kFloat32,
                         std::int64_t steps = 0)
      : current(graph), task(factors, dtype), fit(task, optimizer, options(factors, steps)) {}
  static FitOptions options(const std::vector<double>& factors, std::int64_t steps) {
    FitOptions all;
    all.steps = steps ? steps : static_cast<std::int64_t>(factors.size());
    all.schedule.learning_rate = 0.125;
    all.clip_norm = 1.5;
    return all;
  }
  Graph graph;
  Graph::AsDefault current;
  ScriptedTask task;
  AdamOptimizer optimizer{0.125};
  Fit fit;
};

/// What a run of `count` good steps leaves.
Bytes after_steps(std::int64_t count) {
  ScriptedTrial trial(std::vector<double>(static_cast<std::size_t>(count), 1.0));
  trial.fit.run();
  return bytes_of(trial.graph);
}

/// The waits of each step, seen by a callback; the first steps, which make and choose, left out.
std::vector<GpuWaits> waits_of_steps(Fit& fit, bool ask) {
  constexpr std::size_t kWarm = 4;
  std::vector<GpuWaits> steps;
  std::optional<GpuWaits> last;
  std::optional<StepReport> before;
  double sum = 0.0;
  fit.run({[&](const StepReport& report) {
    if (before) sum += before->metric() + before->gradient_norm();
    before = report;
    if (ask) sum += report.metric();
    const auto now = gpu_waits();
    if (last && now) steps.push_back({now->all - last->all, now->idle - last->idle});
    last = now;
    return true;
  }});
  EXPECT_TRUE(std::isfinite(sum));
  // The last step validates.
  if (steps.size() > kWarm) steps = {steps.begin() + kWarm, steps.end() - 1};
  return steps;
}

TEST(LateSteps, AStepOfTrainingWaitsOnceAndForTheStepBefore) {
  if (!gpu_waits()) GTEST_SKIP() << "for the stand-in, which counts";
  const openrnn::testing::Setting deferred("STAND_IN_DEFERRED", "1");
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
    SCOPED_TRACE(dtype_name(dtype));
    TextTrial trial(dtype, 16);
    const std::vector<GpuWaits> steps = waits_of_steps(*trial.fit, false);
    EXPECT_EQ(steps.size(), 10U);
    for (const GpuWaits& step : steps) {
      EXPECT_LE(step.all, 1);
      EXPECT_EQ(step.idle, 0) << "later work was waited for as well";
    }
  }
}

TEST(LateSteps, WhoAsksWaits) {
  if (!gpu_waits()) GTEST_SKIP() << "for the stand-in, which counts";
  TextTrial trial(DType::kFloat32, 9);
  for (const GpuWaits& step : waits_of_steps(*trial.fit, true)) EXPECT_EQ(step.all, 1);
}

TEST(LateSteps, AnOptimizersStepWaitsOnce) {
  if (!gpu_waits()) GTEST_SKIP() << "for the stand-in, which counts";
  const openrnn::testing::Setting deferred("STAND_IN_DEFERRED", "1");
  for (const std::string_view name : optimizer_names()) {
    SCOPED_TRACE(name);
    Graph graph;
    const Graph::AsDefault current(graph);
    const Variable w = variable_of("w", {1.0F, -2.0F, 3.0F});
    // A counter that somebody put on the GPU.
    const Variable step("step", Array(DType::kInt64, {}), false, &default_device());
    const auto optimizer = make_optimizer(name, 0.01);
    GpuWaits before;
    for (int n = 0; n < 12; ++n) {
      if (n == 4) before = *gpu_waits();
      GradientTape tape;
      const Tensor squares = ops::reduce_mean(ops::square(w.read()));
      const Tensor loss = ops::add(squares, ops::l2_regularization(w.read(), 0.25));
      tape.close();
      optimizer->minimize(tape, loss, {w}, step, 0.5);
    }
    EXPECT_LE(gpu_waits()->all - before.all, 8);
    EXPECT_EQ(gpu_waits()->idle, before.idle);
    optimizer->finish();
    EXPECT_EQ(step.to_host().as<std::int64_t>()[0], 12);
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const char* const kLossError =
    "[AdamOptimizer] a loss of inf at step 2, expected a finite one (a lower learning rate may "
    "help)";

TEST(LateSteps, ALossThatIsNotFiniteEndsTheRunAndChangesNothing) {
  // In the middle, and in the last step.
  for (const std::int64_t left : {3, 1, 0}) {
    SCOPED_TRACE(left);
    std::vector<double> factors{1.0, 1.0, kInfinity};
    factors.resize(static_cast<std::size_t>(3 + left), 1.0);
    ScriptedTrial trial(factors);
    EXPECT_EQ(error_of<ArgumentError>([&] { trial.fit.run(); }), kLossError);
    EXPECT_EQ(trial.fit.step(), 2);
    EXPECT_EQ(bytes_of(trial.graph), after_steps(2));
  }
}

TEST(LateSteps, ARunThatIsStoppedReportsItsLastStep) {
  ScriptedTrial trial({1.0, 1.0, kInfinity, 1.0, 1.0});
  EXPECT_EQ(error_of<ArgumentError>(
                [&] { trial.fit.run({[](const StepReport& report) { return report.step < 3; }}); }),
            kLossError);
  EXPECT_EQ(bytes_of(trial.graph), after_steps(2));
}

TEST(LateSteps, AReportOfSuchAStepIsItsError) {
  ScriptedTrial trial({1.0, 1.0, kInfinity, 1.0, 1.0});
  std::vector<double> metrics;
  EXPECT_EQ(error_of<ArgumentError>([&] {
              trial.fit.run({[&](const StepReport& report) {
                metrics.push_back(report.metric());
                return true;
              }});
            }),
            kLossError);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0], 3.5);
  EXPECT_EQ(bytes_of(trial.graph), after_steps(2));
}

TEST(LateSteps, SavingReportsAndThenSavesWhatIsTrue) {
  ScriptedTrial trial({1.0, 1.0, kInfinity, 1.0});
  const std::string prefix =
      ::testing::TempDir() + "openrnn_late_" + std::to_string(::getpid()) + ".ckpt";
  const Bytes expected = after_steps(2);
  std::int64_t refused = 0;
  EXPECT_EQ(error_of<ArgumentError>([&] {
              trial.fit.run({[&](const StepReport& report) {
                if (report.step != 3) return true;
                refused = report.step;
                Saver().write(prefix);
                return true;
              }});
            }),
            kLossError);
  EXPECT_EQ(refused, late() ? 3 : 0);
  EXPECT_FALSE(tensor_bundle_exists(prefix));
  Extras extras;
  trial.fit.save(extras);  // told already
  Saver().write(prefix, extras);
  const TensorBundleReader reader(prefix);
  EXPECT_EQ(reader.read("global_step").as<std::int64_t>()[0], 2);
  EXPECT_EQ(bytes_of(trial.graph), expected);
  remove_tensor_bundle(prefix);
}

/// Three steps of an optimizer, of which the last one's gradients are infinite.
struct Overflow {
  explicit Overflow(Optimizer& by) : optimizer(by), current(graph) {
    w = variable_of("w", {1.0F, 0.25F});
    step = get_or_create_global_step();
    for (const double factor : {1.0, 1.0, kInfinity})
      error = error_of<ArgumentError>([&] { one(factor); });
  }
  StepResult one(double factor) const {
    GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::scale(w.read(), factor));
    tape.close();
    return optimizer.minimize(tape, loss, {w}, step);
  }
  std::int64_t counted() const { return step.read().to_host().as<std::int64_t>()[0]; }
  Optimizer& optimizer;
  Graph graph;
  Graph::AsDefault current;
  Variable w, step;
  std::string error;  // of the last step itself
};

const char* const kNormError =
    "[AdamOptimizer] gradients with a global norm of inf at step 2, expected finite ones (a lower "
    "learning rate may help)";

TEST(LateSteps, GradientsThatAreNotFiniteAreToldAtTheNextStep) {
  AdamOptimizer optimizer(0.125);
  const Overflow run(optimizer);
  EXPECT_EQ(run.counted(), late() ? 3 : 2);
  const std::string next = error_of<ArgumentError>([&] { run.one(1.0); });
  EXPECT_EQ(late() ? next : run.error, kNormError);
  EXPECT_EQ(late() ? run.error : next, "");
  // The step in which it is told is not taken either.
  EXPECT_EQ(run.counted(), late() ? 2 : 3);
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.finish(); }), "");
  if (late()) run.one(1.0);
  const Bytes after = bytes_of(run.graph);
  AdamOptimizer other(0.125);
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = variable_of("w", {1.0F, 0.25F}), step = get_or_create_global_step();
  for (int n = 0; n < 3; ++n) {
    GradientTape tape;
    const Tensor loss = ops::reduce_sum(ops::scale(w.read(), 1.0));
    tape.close();
    other.minimize(tape, loss, {w}, step);
  }
  EXPECT_EQ(bytes_of(graph), after);
}

TEST(LateSteps, FinishTellsOnce) {
  AdamOptimizer optimizer(0.125);
  const Overflow run(optimizer);
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.finish(); }), late() ? kNormError : "");
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.finish(); }), "");
  EXPECT_EQ(run.counted(), 2);
}

TEST(LateSteps, BringingAVariableToTheHostTellsOnce) {
  AdamOptimizer optimizer(0.125);
  const Overflow run(optimizer);
  EXPECT_EQ(error_of<ArgumentError>([&] { run.w.to_host(); }), late() ? kNormError : "");
  EXPECT_EQ(error_of<ArgumentError>([&] { run.w.to_host(); }), "");
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.finish(); }), "");
  EXPECT_EQ(run.counted(), 2);
}

TEST(LateSteps, WhoAppliesGradientsIsToldOfTheStepBefore) {
  AdamOptimizer optimizer(0.125);
  const Overflow run(optimizer);
  const DeviceArray slope = DeviceArray::zeros(default_device(), DType::kFloat32, {2});
  EXPECT_EQ(error_of<ArgumentError>([&] { optimizer.apply_gradients({slope}, {run.w}); }),
            late() ? kNormError : "");
}

TEST(LateSteps, AnOptimizerThatDiesSettlesItsLastStep) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = variable_of("w", {1.0F});
  Variable power;
  {
    AdamOptimizer optimizer(0.125, 0.5);
    GradientTape tape;
    const Tensor loss = ops::reduce_sum(w.read());
    tape.close();
    optimizer.minimize(tape, loss, {w});
    power = graph.variable("beta1_power");
  }
  EXPECT_EQ(power.to_host().as<float>()[0], 0.25F);
}

TEST(LateSteps, ScalarsAreTrueWhoeverReadsOrWritesThem) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = variable_of("w", {1.0F});
  AdamOptimizer optimizer(0.125, 0.5);
  const auto step = [&] {
    GradientTape tape;
    const Tensor loss = ops::reduce_sum(w.read());
    tape.close();
    optimizer.minimize(tape, loss, {w});
  };
  step();
  const Variable power = graph.variable("beta1_power");
  EXPECT_EQ(power.read().item(), 0.25);
  step();
  const float other = 0.75F;
  power.assign(ConstArrayView{&other, DType::kFloat32, {}});
  EXPECT_EQ(power.read().item(), 0.75);
  step();
  EXPECT_EQ(power.read().item(), 0.375);
}

// The scale's way is the same whether somebody asks after each step or nobody does.
TEST(LateSteps, TheLossScaleGoesItsWayUnasked) {
  // Gradients times the scale are beyond float16 above 2^13, then above 2^12, then never.
  const std::vector<double> factors{4.0, 4.0, 4.0, 4.0, 8.0, 8.0, 1.0, 1.0, 1.0};
  const auto run = [&](bool ask) {
    ScriptedTrial trial(factors, DType::kFloat16);
    std::vector<bool> applied;
    trial.fit.run({[&](const StepReport& report) {
      if (ask) applied.push_back(report.applied());
      return true;
    }});
    if (ask) {
      EXPECT_EQ(applied,
                (std::vector<bool>{false, false, true, true, false, true, true, true, true}));
    }
    EXPECT_EQ(trial.optimizer.loss_scale(), 4096.0);
    EXPECT_EQ(trial.fit.step(), 9);
    return bytes_of(trial.graph);
  };
  const Bytes asked = run(true), unasked = run(false);
  EXPECT_EQ(unasked, asked);
  EXPECT_EQ(unasked.at("loss_scale_good_steps").substr(0, 1), std::string(1, '\4'));
}

TEST(LateSteps, TheLeastLossScaleEndsWithAnError) {
  ScriptedTrial trial({1.0, kInfinity, kInfinity, 1.0}, DType::kFloat16);
  const float least = 0x1p-15F;
  trial.graph.variable("loss_scale").assign(ConstArrayView{&least, DType::kFloat32, {}});
  const std::string error = error_of<ArgumentError>([&] { trial.fit.run(); });
  EXPECT_EQ(error.find("[AdamOptimizer] gradients with a global norm of "), 0U) << error;
  EXPECT_NE(error.find(" at step 2, expected finite ones"), std::string::npos) << error;
  EXPECT_EQ(trial.fit.step(), 2);
  EXPECT_EQ(trial.optimizer.loss_scale(), 0x1p-16);
}

TEST(LateSteps, AConstraintFollowsOnlyAStepThatIsTaken) {
  Graph graph;
  const Graph::AsDefault current(graph);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Variable w = variable_of(std::string(dtype_name(dtype)), {4.0F, 1.0F, 2.0F}, dtype);
    w.set_constraint([](const Tensor& x) { return ops::scale(x, 0.5); });
    GradientDescentOptimizer optimizer(0.0);
    const auto value = [&] { return element(w.read().to_host().view(), 0); };
    const auto step = [&](double factor) {
      error_of<ArgumentError>([&] {
        GradientTape tape;
        const Tensor scaled = ops::scale(ops::cast(w.read(), DType::kFloat32), factor);
        const Tensor loss = ops::reduce_sum(scaled);
        tape.close();
        optimizer.minimize(tape, loss, {w});
      });
    };
    step(1.0);
    EXPECT_EQ(value(), 2.0);
    step(kInfinity);
    EXPECT_EQ(value(), 2.0) << dtype_name(dtype);
    error_of<ArgumentError>([&] { optimizer.finish(); });
    step(1.0);
    EXPECT_EQ(value(), 1.0) << dtype_name(dtype);
  }
}

// As a constraint that is called at once: its value goes to the variable's device, or is refused.
TEST(LateSteps, AConstraintMayGiveAnythingThatAVariableTakes) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w = variable_of("w", {4.0F, 1.0F, 2.0F});
  GradientDescentOptimizer optimizer(0.0);
  const auto step = [&](const Tensor& projected) {
    w.set_constraint([&](const Tensor&) { return projected; });
    return error_of<ArgumentError>([&] {
      GradientTape tape;
      const Tensor loss = ops::reduce_sum(w.read());
      tape.close();
      optimizer.minimize(tape, loss, {w});
    });
  };
  const auto of = [](const Shape& shape) {
    Array values(DType::kFloat32, shape);
    for (float& value : values.as<float>()) value = 0.75F;
    return Tensor(values.view(), cpu_device());
  };
  EXPECT_EQ(step(of({3})), "");
  EXPECT_EQ(element(w.to_host().view(), 2), 0.75);
  const auto refused = [](const std::string& what) {
    return "[assign] the value is " + what + ", expected float32 of shape [3] as 'w'";
  };
  EXPECT_EQ(step(of({2})), refused("float32 of shape [2]"));
  EXPECT_EQ(step(Tensor(Array(DType::kFloat64, {3}).view(), cpu_device())),
            refused("float64 of shape [3]"));
  EXPECT_EQ(element(w.to_host().view(), 2), 0.75);
}

TEST(LateSteps, GradientsOfTwoDevicesAreReadAtOnce) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable here = variable_of("here", {1.0F}, DType::kFloat32, &cpu_device());
  const Variable there = variable_of("there", {1.0F});
  GradientDescentOptimizer optimizer(1.0);
  const float three = 3.0F, four = 4.0F;
  const StepResult result = optimizer.clip_and_apply(
      {DeviceArray::from_host(cpu_device(), {&three, DType::kFloat32, {1}}),
       DeviceArray::from_host(default_device(), {&four, DType::kFloat32, {1}})},
      {here, there}, {}, 2.5);
  EXPECT_TRUE(result.known());
  EXPECT_EQ(result.gradient_norm(), 5.0);
  EXPECT_EQ(element(here.to_host().view(), 0), -0.5);
  EXPECT_EQ(element(there.to_host().view(), 0), -1.0);
}

}  // namespace
}  // namespace openrnn::train
