// What a fit asks of its task, and the ends of what it takes up.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

/// A task that writes down what it is asked.
class AskedTask : public Task {
 public:
  AskedTask() {
    const float one = 1.0F;
    weight_ = Variable("w", Array::of<float>({}, std::span<const float>(&one, 1)));
  }
  std::int64_t windows() const override { return 3; }
  Tensor loss(const DataPosition& position) override {
    losses.push_back(position);
    return ops::square(weight_.read());
  }
  std::int64_t items(const DataPosition& position) const override {
    return 100 * position.epoch + position.window;
  }
  double metric(double loss) const override { return loss; }
  std::string_view metric_name() const override { return "loss"; }
  double validate(bool quick) override {
    quicks.push_back(quick);
    return 1.0;
  }
  std::vector<Variable> variables() const override { return {weight_}; }
  void save(Extras& extras) const override { extras.set_int("saved", 1); }
  void load(const Extras& extras) override { loaded = extras.get_int("saved"); }

  std::vector<DataPosition> losses;
  std::vector<bool> quicks;
  std::int64_t loaded = 0;

 private:
  Variable weight_;
};

struct Asked {
  explicit Asked(double clip_norm = 0.0)
      : current(graph), optimizer(0.0), fit(task, optimizer, options(clip_norm)) {}
  static FitOptions options(double clip_norm) {
    FitOptions options;
    options.steps = 5;
    options.schedule = {ScheduleKind::kConstant, 0.0};
    options.validate_every = 2;
    options.clip_norm = clip_norm;
    return options;
  }
  Graph graph;
  Graph::AsDefault current;
  AskedTask task;
  GradientDescentOptimizer optimizer;
  Fit fit;
};

TEST(Fit, AsksForTheWindowsInOrderAndReportsTheirItems) {
  Asked asked;
  std::vector<std::int64_t> items;
  asked.fit.run({[&](const StepReport& report) {
    items.push_back(report.items);
    return true;
  }});
  EXPECT_EQ(asked.task.losses, (std::vector<DataPosition>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}}));
  EXPECT_EQ(items, (std::vector<std::int64_t>{0, 1, 2, 100, 101}));
  // All by one measure: the best is found among them.
  EXPECT_EQ(asked.task.quicks, (std::vector<bool>{true, true, true}));
}

// The rate is that of the step that was taken, and the optimizer has it.
TEST(Fit, ReportsTheRateOfEachStep) {
  Asked asked;
  FitOptions options = Asked::options(0.0);
  options.schedule = {ScheduleKind::kExponential, 0.5, 2, 3, 0.25};
  Fit fit(asked.task, asked.optimizer, options);
  std::vector<std::int64_t> steps;
  fit.run({[&](const StepReport& report) {
    steps.push_back(report.step);
    EXPECT_EQ(report.steps, 5);
    EXPECT_EQ(report.learning_rate, options.schedule.at(report.step - 1));
    EXPECT_EQ(asked.optimizer.learning_rate(), report.learning_rate);
    EXPECT_EQ(report.task, &asked.task);
    return true;
  }});
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
}

TEST(Task, ThatComputesWholeBatchesAloneSaysSo) {
  Asked asked;
  EXPECT_EQ(error_of<StateError>([&] {
              asked.task.loss_of_part({}, {2, 3, 8});
            }),
            "[Task] rows 2 to 5 of a batch of 8 of a task that computes whole batches alone, "
            "expected one that overrides batch and loss_of_part");
}

TEST(Fit, RefusesAClipThatIsNoNumber) {
  for (const double bad : {HUGE_VAL, std::nan(""), -HUGE_VAL}) {
    std::ostringstream number;
    number << bad;
    EXPECT_EQ(error_of<ArgumentError>([&] { Asked asked(bad); }),
              "[Fit] clip_norm " + number.str() + ", expected a finite number of at least 0");
  }
}

// A saved state that is wrong is refused as a whole.
TEST(Resume, WhatIsLoadedIsInItsBounds) {
  using Change = std::function<void(Asked&, Extras&)>;
  const auto with = [](const char* name, std::int64_t value) {
    return [=](Asked&, Extras& extras) { extras.set_int(name, value); };
  };
  const auto with_best = [](double value) {
    return [=](Asked&, Extras& extras) { extras.set_float("best", value); };
  };
  const Change step_before_zero = [](Asked& asked, Extras&) {
    const std::int64_t step = -1;
    asked.graph.variable("global_step").assign(ConstArrayView{&step, DType::kInt64, {}});
  };
  const std::string place = " of the saved run, expected 0 or more, and 0 to 2 with this data",
                    each = " of the saved run, expected 0 or more of each",
                    finite = " of the saved run, expected a finite one";
  const std::pair<std::string, Change> cases[] = {
      {"epoch -1 and window 0" + place, with("epoch", -1)},
      {"epoch 0 and window -1" + place, with("window", -1)},
      {"epoch 0 and window 3" + place, with("window", 3)},
      {"worse -1, best_step 0 and step 0" + each, with("worse", -1)},
      {"worse 0, best_step -1 and step 0" + each, with("best_step", -1)},
      {"worse 0, best_step 0 and step -1" + each, step_before_zero},
      {"best inf" + finite, with_best(HUGE_VAL)},
      {"best nan" + finite, with_best(std::nan(""))}};
  for (const auto& [said, change] : cases) {
    Asked asked;
    Extras extras;
    asked.fit.save(extras);
    change(asked, extras);
    const std::string error = error_of<ArgumentError>([&] { asked.fit.load(extras); });
    EXPECT_EQ(error, "[Fit] " + said);
    EXPECT_EQ(asked.task.loaded, 0) << said;
  }
  Asked asked;
  Extras extras;
  asked.fit.save(extras);
  for (const Change& good : {Change(with("epoch", 7)), Change(with("window", 2)),
                             Change(with("worse", 0)), Change(with_best(-3.5))}) {
    good(asked, extras);
    EXPECT_NO_THROW(asked.fit.load(extras));
  }
  EXPECT_EQ(asked.task.loaded, 1);
  EXPECT_EQ(asked.fit.best(), -3.5);
}

// The outputs of a projecting network are narrower than its cells: states of both sizes go on.
TEST(Resume, StatesOfAProjectingNetworkGoOn) {
  const Text text = text_of_words(std::array{"the ", "cat ", "sat\n"}, 200, 40);
  const auto loss_of_second = [&](bool resumes) {
    Graph graph;
    const Graph::AsDefault current(graph);
    SequenceModel model({.network = {.num_units = 5, .num_proj = 2},
                         .vocabulary = text.vocabulary.size(),
                         .outputs = text.vocabulary.size()});
    const TextTask::Options options{.batch = 3, .seq_len = 7};
    TextTask first(model, text, options), second(model, text, options);
    first.loss({0, 0});
    if (!resumes) return first.loss({0, 1}).item();
    Extras extras;
    first.save(extras);
    second.load(extras);
    return second.loss({0, 1}).item();
  };
  EXPECT_EQ(loss_of_second(true), loss_of_second(false));
}

TEST(SeriesTask, SquaresOfNarrowOutputsDoNotOverflow) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;
    Graph graph;
    const Graph::AsDefault current(graph);
    SeriesTable table{.names = {"a"}, .values = Array(DType::kFloat64, {40, 1})};
    for (std::size_t i = 0; i < 40; ++i) {
      table.values.as<double>()[i] = std::sin(static_cast<double>(i * i));
    }
    const SeriesWindows data(table, {.window = 4, .to_sequence = true, .batch = 8});
    SequenceModel model({.network = {.num_units = 2, .dtype = dtype}, .columns = 1, .outputs = 1});
    model.dense().bias().assign(cast(Array::of<float>({1}, {{400.0F}}).view(), dtype).view());
    SeriesTask task(model, data, true);
    const Tensor loss = task.loss({0, 0});
    EXPECT_EQ(loss.dtype(), dtype == DType::kFloat64 ? dtype : DType::kFloat32);
    EXPECT_NEAR(loss.item(), 160000.0, 4000.0) << dtype_name(dtype);
  }
}

// No field is what it is by default.
RunConfig other_config() {
  RunConfig config;
  config.task = "series";
  config.optimizer = "adagrad";
  config.batch = 17;
  config.seq_len = 18;
  config.epochs = 19;
  config.level = TextLevel::kChar;
  config.columns = {"a", "b"};
  config.horizon = 20;
  config.to_sequence = true;
  config.valid_fraction = 0.375;
  config.input = "in";
  config.valid = "valid";
  config.data_hash = "hash";
  config.model.network.training.seed = 21;
  config.fit.micro_batches = 22;
  config.fit.schedule = {ScheduleKind::kExponential, 0.25, 23, 24, 0.75, 0.625};
  return config;
}

TEST(RunConfiguration, KeepsWhatIsBesideTheModel) {
  const RunConfig config = other_config(), found = run_config_from_json(to_json(config));
  EXPECT_EQ(found.task, config.task);
  EXPECT_EQ(found.optimizer, config.optimizer);
  EXPECT_EQ(found.batch, config.batch);
  EXPECT_EQ(found.seq_len, config.seq_len);
  EXPECT_EQ(found.epochs, config.epochs);
  EXPECT_EQ(found.level, config.level);
  EXPECT_EQ(found.columns, config.columns);
  EXPECT_EQ(found.horizon, config.horizon);
  EXPECT_EQ(found.to_sequence, config.to_sequence);
  EXPECT_EQ(found.valid_fraction, config.valid_fraction);
  EXPECT_EQ(found.input, config.input);
  EXPECT_EQ(found.valid, config.valid);
  EXPECT_EQ(found.data_hash, config.data_hash);
  EXPECT_EQ(found.fit.micro_batches, config.fit.micro_batches);
  const Schedule &schedule = found.fit.schedule, &wanted = config.fit.schedule;
  EXPECT_EQ(schedule.kind, wanted.kind);
  EXPECT_EQ(schedule.learning_rate, wanted.learning_rate);
  EXPECT_EQ(schedule.warmup_steps, wanted.warmup_steps);
  EXPECT_EQ(schedule.decay_steps, wanted.decay_steps);
  EXPECT_EQ(schedule.decay_rate, wanted.decay_rate);
  EXPECT_EQ(schedule.final_fraction, wanted.final_fraction);
}

TEST(RunConfiguration, SaysHowItsSeriesIsCut) {
  const SeriesOptions options = series_options(other_config());
  EXPECT_EQ(options.window, 18);
  EXPECT_EQ(options.horizon, 20);
  EXPECT_EQ(options.to_sequence, true);
  EXPECT_EQ(options.batch, 17);
  EXPECT_EQ(options.valid_fraction, 0.375);
  EXPECT_EQ(options.seed, 21U);
}

}  // namespace
}  // namespace openrnn::train
