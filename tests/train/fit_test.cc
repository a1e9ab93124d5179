// The fit loop: the same bits whatever is saved, restored or interrupted, on any number of threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "openrnn/ops.h"
#include "support/expect_error.h"
#include "support/text_runs.h"

namespace openrnn::train {
namespace {

Text small_text() {
  const char* const words[] = {"the ", "cat ",   "sat ",   "on ",
                               "a ",   "mat,\n", "while ", "dogs ran.\n"};
  return text_of_words(words, 1300, 200);
}

/// One run in a graph of its own.
struct Trial {
  struct Options {
    DType dtype = DType::kFloat32;
    RnnMode mode = RnnMode::kLstm;
    std::string optimizer = "adam";
    FitOptions fit = {};
  };
  explicit Trial(const Options& options) : current(graph), text(small_text()) {
    ModelConfig config;
    config.network.mode = options.mode;
    config.network.num_layers = 2;
    config.network.num_units = 9;
    config.embedding = 5;
    config.vocabulary = config.outputs = text.vocabulary.size();
    config.network.training.dropout = 0.3;
    config.network.dtype = options.dtype;
    config.network.training.seed = 11;
    model = std::make_unique<SequenceModel>(config);
    task = std::make_unique<TextTask>(*model, text, TextTask::Options{.batch = 3, .seq_len = 17});
    optimizer = make_optimizer(options.optimizer, 0.01);
    fit = std::make_unique<Fit>(*task, *optimizer, options.fit);
    saver = std::make_unique<Saver>();
  }
  Bytes bytes() const { return bytes_of(graph); }

  Graph graph;
  Graph::AsDefault current;
  Text text;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<TextTask> task;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Fit> fit;
  std::unique_ptr<Saver> saver;
};

Trial::Options options_of(DType dtype, const std::string& optimizer = "adam") {
  Trial::Options options;
  options.dtype = dtype;
  options.optimizer = optimizer;
  options.fit.steps = 60;  // an epoch has 26 windows
  options.fit.schedule = {ScheduleKind::kCosine, 0.01, 5, 60, 0.5, 0.05};
  options.fit.validate_every = 20;
  return options;
}

Bytes uninterrupted(const Trial::Options& options) {
  Trial run(options);
  EXPECT_EQ(run.fit->run(), StopReason::kDone);
  return run.bytes();
}

/// Saves and starts over from the file after each of these steps.
Bytes in_pieces(const Trial::Options& options, const std::vector<std::int64_t>& stops) {
  const std::string prefix =
      testing::TempDir() + "openrnn_fit_" + std::to_string(::getpid()) + ".ckpt";
  bool started = false;
  for (const std::int64_t stop : stops) {
    Trial run(options);
    if (started) run.fit->load(run.saver->restore(prefix));
    started = true;
    EXPECT_EQ(run.fit->run({[&](const StepReport& report) { return report.step < stop; }}),
              StopReason::kCallback);
    Extras extras;
    run.fit->save(extras);
    run.saver->write(prefix, extras);
  }
  Trial run(options);
  run.fit->load(run.saver->restore(prefix));
  EXPECT_EQ(run.fit->run(), StopReason::kDone);
  remove_tensor_bundle(prefix);
  return run.bytes();
}

TEST(TextTask, AFreshWindowStartsFromZeros) {
  const Trial run(options_of(DType::kFloat32));
  const auto loss_of = [&](std::int64_t window) {
    run.model->set_dropout_calls(0);
    return run.task->loss({0, window}).item();
  };
  const double first = loss_of(0), second = loss_of(1);
  EXPECT_EQ(loss_of(0), first);
  EXPECT_EQ(loss_of(1), second);
  EXPECT_NE(loss_of(1), second) << "the state is carried";
}

TEST(TextTask, WindowsAreThoseOfItsStreams) {
  const Trial run(options_of(DType::kFloat32));
  const TextStreams streams({std::vector<std::int32_t>(run.text.train.size())},
                            {.batch = 3, .seq_len = 17});
  EXPECT_EQ(run.task->windows(), streams.windows());
}

TEST(TextTask, AQuickValidationEndsWithAWholeCharacter) {
  Graph graph;
  const Graph::AsDefault current(graph);
  Text text;
  text.train = "ab\u00e4\u20acba\u20ac\u00e4";
  text.valid = "a\u00e4b\u20acab";  // its characters begin at bytes 0, 1, 3, 4, 7 and 8
  text.vocabulary = Vocabulary::of_text(text.train, TextLevel::kChar);
  ModelConfig config;
  config.network.num_units = 3;
  config.vocabulary = config.outputs = text.vocabulary.size();
  SequenceModel model(config);
  for (const auto& [most, kept] : std::map<std::int64_t, std::size_t>{
           {9, 9}, {8, 8}, {7, 7}, {6, 4}, {5, 4}, {4, 4}, {3, 3}, {2, 1}, {1, 1}}) {
    TextTask::Options options{.batch = 1, .seq_len = 2};
    options.quick_bytes = most;
    TextTask task(model, text, options);
    const auto score = [&](std::size_t bytes) {
      return score_text(model, text.vocabulary, std::string_view(text.valid).substr(0, bytes))
          .bits_per_byte();
    };
    EXPECT_EQ(task.validate(true), score(kept)) << most;
    EXPECT_EQ(task.validate(false), score(9)) << most;
  }
}

TEST(Fit, ResumedEqualsUninterruptedBitForBit) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;  // of processors
    const Trial::Options options = options_of(dtype);
    const Bytes whole = uninterrupted(options);
    EXPECT_GE(whole.size(), 12U);  // 4 variables, 2 slots each, powers, global_step
    EXPECT_EQ(in_pieces(options, {1, 25, 26, 27, 41}), whole) << dtype_name(dtype);
  }
}

TEST(Fit, ResumesEveryOptimizer) {
  for (const std::string_view name : optimizer_names()) {
    const Trial::Options options = options_of(DType::kFloat32, std::string(name));
    EXPECT_EQ(in_pieces(options, {7, 33}), uninterrupted(options)) << name;
  }
}

TEST(Fit, ThreadsChangeNoBit) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    Trial::Options options = options_of(DType::kFloat32);
    options.mode = mode;
    const int before = num_threads();
    std::vector<Bytes> results;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      results.push_back(uninterrupted(options));
    }
    set_num_threads(before);
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST(Fit, SavingAndValidatingChangeNoBit) {
  Trial::Options options = options_of(DType::kFloat32);
  const Bytes plain = uninterrupted(options);
  options.fit.validate_every = 3;
  Trial run(options);
  const std::string prefix =
      testing::TempDir() + "openrnn_saving_" + std::to_string(::getpid()) + ".ckpt";
  run.fit->run({[&](const StepReport&) {
    Extras extras;
    run.fit->save(extras);
    run.saver->write(prefix, extras);
    return true;
  }});
  remove_tensor_bundle(prefix);
  EXPECT_EQ(run.bytes(), plain);
}

TEST(Fit, LearnsTheText) {
  Trial::Options options = options_of(DType::kFloat32);
  options.fit.steps = 300;
  options.fit.schedule.decay_steps = 300;
  Trial run(options);
  double first = 0.0, last = 0.0;
  run.fit->run({[&](const StepReport& report) {
    if (report.step == 1) first = report.metric();
    if (report.validation) last = *report.validation;
    return true;
  }});
  // Words drawn at random: 3 bits each, of 4.5 bytes on average.
  EXPECT_NEAR(first, std::log2(static_cast<double>(run.text.vocabulary.size())), 0.5);
  EXPECT_LT(last, first - 1.2);
  EXPECT_GT(last, 0.5);
}

TEST(Fit, PatienceEndsARunThatGetsNoBetter) {
  Trial::Options options = options_of(DType::kFloat32);
  options.fit.schedule = {ScheduleKind::kConstant, 0.0};
  options.fit.validate_every = 2;
  options.fit.patience = 3;
  Trial run(options);
  EXPECT_EQ(run.fit->run(), StopReason::kPatience);
  EXPECT_EQ(run.fit->step(), 8);  // the first validation is the best of four equal ones
  EXPECT_EQ(run.fit->best_step(), 2);
  Extras extras;
  run.fit->save(extras);
  EXPECT_EQ(run.fit->run(), StopReason::kPatience);
  EXPECT_EQ(run.fit->step(), 8);
}

TEST(Fit, EveryCallbackHearsOfTheStepThatAnotherEnds) {
  Trial run(options_of(DType::kFloat32));
  std::vector<std::int64_t> first, second;
  EXPECT_EQ(run.fit->run({[&](const StepReport& report) {
                            first.push_back(report.step);
                            return report.step < 2;
                          },
                          [&](const StepReport& report) {
                            second.push_back(report.step);
                            return true;
                          }}),
            StopReason::kCallback);
  EXPECT_EQ(first, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(second, first);
}

TEST(Fit, RefusesBadOptions) {
  const auto error_of = [](auto change) {
    Trial::Options options = options_of(DType::kFloat32);
    change(options.fit);
    return openrnn::error_of<ArgumentError>([&] { Trial run(options); });
  };
  EXPECT_EQ(error_of([](FitOptions& fit) { fit.schedule.learning_rate = std::nan(""); }),
            "[Schedule] learning_rate nan, expected a finite number of at least 0");
  EXPECT_EQ(error_of([](FitOptions& fit) { fit.clip_norm = -1.0; }),
            "[Fit] clip_norm -1, expected a finite number of at least 0");
  EXPECT_EQ(error_of([](FitOptions& fit) { fit.steps = -1; }),
            "[Fit] steps -1, expected 0 or more");
  EXPECT_EQ(error_of([](FitOptions& fit) { fit.patience = -1; }),
            "[Fit] validate_every 20 and patience -1, expected 0 or more of each");
}

// What a resumed run takes over besides variables: dropout's counter, patience, the best value.

SeriesTable waves() {
  SeriesTable table;
  table.names = {"a", "b"};
  table.values = Array(DType::kFloat64, {90, 2});
  for (std::size_t i = 0; i < 180; ++i) {
    table.values.as<double>()[i] = std::sin(0.37 * static_cast<double>(i * i % 31));
  }
  return table;
}

/// Forecasts with dropout in a graph of their own.
struct SeriesTrial {
  explicit SeriesTrial(double dropout)
      : current(graph), data(waves(), {.window = 6, .batch = 16, .seed = 3}) {
    ModelConfig config;
    config.network.num_layers = 2;
    config.network.num_units = 5;
    config.columns = config.outputs = 2;
    config.network.training.dropout = dropout;
    config.network.training.seed = 3;
    model = std::make_unique<SequenceModel>(config);
    task = std::make_unique<SeriesTask>(*model, data, false);
    optimizer = make_optimizer("adam", 0.01);
    FitOptions options;
    options.steps = 24;  // an epoch has 5 windows
    options.schedule = {ScheduleKind::kConstant, 0.01};
    fit = std::make_unique<Fit>(*task, *optimizer, options);
  }
  void run_to(std::int64_t stop) {
    fit->run({[&](const StepReport& report) { return report.step < stop; }});
  }

  Graph graph;
  Graph::AsDefault current;
  SeriesWindows data;
  std::unique_ptr<SequenceModel> model;
  std::unique_ptr<SeriesTask> task;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Fit> fit;
};

/// The variables by name, and what the fit keeps.
struct Saved {
  std::map<std::string, Array> values;
  Extras extras;
};

template <class Trial>
Saved saved(const Trial& trial) {
  Saved all;
  for (const Variable& variable : trial.graph.variables()) {
    all.values.emplace(variable.name(), variable.to_host());
  }
  trial.fit->save(all.extras);
  return all;
}

template <class Trial>
void restore(const Saved& from, Trial& trial) {
  for (const auto& [name, value] : from.values) {
    trial.graph.variable(name).assign(value.view());
  }
  trial.fit->load(from.extras);
}

TEST(Resume, ASeriesGoesOnWithItsOwnMasks) {
  SeriesTrial whole(0.4);
  whole.run_to(24);
  SeriesTrial first(0.4);
  first.run_to(11);
  const Saved half = saved(first);
  EXPECT_GT(half.extras.get_int("dropout_calls"), 0);
  SeriesTrial second(0.4);
  restore(half, second);
  EXPECT_EQ(second.model->dropout_calls(), first.model->dropout_calls());
  second.run_to(24);
  EXPECT_EQ(bytes_of(second.graph), bytes_of(whole.graph));
}

// An update that finds a tape of its step copies what it writes.
TEST(Fit, StepsWriteVariablesWhereTheyLie) {
  SeriesTrial trial(0.4);
  trial.run_to(2);
  const auto addresses = [&] {
    std::map<std::string, const void*> all;
    for (const Variable& variable : trial.model->variables()) {
      all[variable.name()] = variable.read().value().data();
    }
    return all;
  };
  const auto before = addresses();
  EXPECT_GT(before.size(), 2u);
  trial.run_to(5);
  EXPECT_EQ(addresses(), before);
}

/// A task whose validations are given: the loss is that of one weight.
class ScriptedTask : public Task {
 public:
  explicit ScriptedTask(std::vector<double> validations) : validations_(std::move(validations)) {
    const float one = 1.0F;
    weight_ = Variable("w", Array::of<float>({}, std::span<const float>(&one, 1)));
  }
  std::int64_t windows() const override { return 1000; }
  Tensor loss(const DataPosition&) override { return ops::square(weight_.read()); }
  std::int64_t items(const DataPosition&) const override { return 1; }
  double metric(double loss) const override { return loss; }
  std::string_view metric_name() const override { return "loss"; }
  double validate(bool) override { return validations_.at(validated_++); }
  std::vector<Variable> variables() const override { return {weight_}; }
  void save(Extras& extras) const override {
    extras.set_int("validated", static_cast<std::int64_t>(validated_));
  }
  void load(const Extras& extras) override {
    validated_ = static_cast<std::size_t>(extras.get_int("validated"));
  }
  std::size_t validated() const { return validated_; }

 private:
  std::vector<double> validations_;
  std::size_t validated_ = 0;
  Variable weight_;
};

struct ScriptedTrial {
  ScriptedTrial(const FitOptions& options, std::vector<double> validations)
      : current(graph),
        task(std::move(validations)),
        optimizer(0.0),
        fit_(task, optimizer, options) {}
  Graph graph;
  Graph::AsDefault current;
  ScriptedTask task;
  GradientDescentOptimizer optimizer;
  Fit fit_;
  Fit* fit = &fit_;
};

FitOptions scripted_options(std::int64_t steps, std::int64_t every, std::int64_t patience) {
  FitOptions options;
  options.steps = steps;
  options.schedule = {ScheduleKind::kConstant, 0.0};
  options.validate_every = every;
  options.patience = patience;
  return options;
}

TEST(Resume, PatienceGoesOnCounting) {
  const FitOptions options = scripted_options(100, 1, 3);
  const std::vector<double> script{5.0, 2.0, 3.0, 4.0, 4.5, 4.4, 4.3, 4.2};
  ScriptedTrial whole(options, script);
  EXPECT_EQ(whole.fit->run(), StopReason::kPatience);
  EXPECT_EQ(whole.fit->step(), 5);
  for (const std::int64_t stop : {1, 2, 3, 4}) {
    SCOPED_TRACE(stop);
    ScriptedTrial first(options, script);
    first.fit->run({[&](const StepReport& report) { return report.step < stop; }});
    ScriptedTrial second(options, script);
    restore(saved(first), second);
    EXPECT_EQ(second.fit->best(), first.fit->best());
    EXPECT_EQ(second.fit->best_step(), first.fit->best_step());
    std::vector<std::int64_t> best_steps;
    EXPECT_EQ(second.fit->run({[&](const StepReport& report) {
      if (report.best) best_steps.push_back(report.step);
      return true;
    }}),
              StopReason::kPatience);
    EXPECT_EQ(second.fit->step(), 5);
    EXPECT_EQ(second.fit->best(), 2.0);
    EXPECT_EQ(second.fit->best_step(), 2);
    EXPECT_EQ(best_steps, stop < 2 ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{});
  }
}

TEST(Resume, ABetterValueStartsPatienceAgain) {
  ScriptedTrial trial(scripted_options(100, 1, 2), {3.0, 4.0, 2.0, 4.0, 2.0, 1.0});
  EXPECT_EQ(trial.fit->run(), StopReason::kPatience);
  EXPECT_EQ(trial.fit->step(), 5);  // an equal one is no better
  EXPECT_EQ(trial.fit->best_step(), 3);
}

TEST(Resume, TheLastStepValidates) {
  const auto steps_validated = [](std::int64_t steps, std::int64_t every) {
    ScriptedTrial trial(scripted_options(steps, every, 0), std::vector<double>(100, 1.0));
    std::vector<std::int64_t> seen;
    trial.fit->run({[&](const StepReport& report) {
      if (report.validation) seen.push_back(report.step);
      return true;
    }});
    EXPECT_EQ(trial.task.validated(), seen.size());
    return seen;
  };
  EXPECT_EQ(steps_validated(5, 0), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(steps_validated(5, 2), (std::vector<std::int64_t>{2, 4, 5}));
  EXPECT_EQ(steps_validated(4, 2), (std::vector<std::int64_t>{2, 4}));
}

TEST(Resume, AValidationThatIsNoNumberIsAnError) {
  ScriptedTrial trial(scripted_options(9, 2, 0), {3.0, std::nan(""), 1.0});
  try {
    trial.fit->run();
    ADD_FAILURE();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[Fit] a validation of nan at step 4, expected a finite one (a lower learning rate "
              "may help)");
  }
  EXPECT_EQ(trial.fit->best(), 3.0);
}

TEST(Fit, TakesTheEndsOfItsBounds) {
  EXPECT_EQ(ScriptedTrial(scripted_options(0, 0, 0), {}).fit_.run(), StopReason::kDone);
  for (const auto& options :
       {scripted_options(-1, 0, 0), scripted_options(1, -1, 0), scripted_options(1, 0, -1)}) {
    EXPECT_THROW(ScriptedTrial(options, {}), ArgumentError);
  }
}

TEST(RunConfig, GoesThroughJson) {
  RunConfig config;
  config.task = "series";
  config.model.network.mode = RnnMode::kGru;
  config.model.network.training.dropout = 0.1;
  config.fit.schedule.learning_rate = 0.1;
  config.columns = {"a", "b,\"c\""};
  config.input = "f\xff.csv";
  const RunConfig back = run_config_from_json(to_json(config));
  EXPECT_EQ(back.model.network.mode, RnnMode::kGru);
  EXPECT_EQ(back.fit.schedule.learning_rate, 0.1);
  EXPECT_EQ(back.columns, config.columns);
  EXPECT_EQ(to_json(back), to_json(config));
  config.model.network.training.seed = 9;
  EXPECT_EQ(series_options(config).seed, 9U);
  EXPECT_THROW(run_config_from_json("{}"), ArgumentError);
  EXPECT_THROW(run_config_from_json("{"), ArgumentError);
}

TEST(Fingerprint, TellsBytesApart) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
}

}  // namespace
}  // namespace openrnn::train
