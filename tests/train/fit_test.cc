// The fit loop: the same bits whatever is saved, restored or interrupted, on any number of threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "train/text_runs.h"

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
    config.mode = options.mode;
    config.layers = 2;
    config.units = 9;
    config.embedding = 5;
    config.vocabulary = config.outputs = text.vocabulary.size();
    config.dropout = 0.3;
    config.dtype = options.dtype;
    config.seed = 11;
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
    run.saver->save(prefix, extras);
  }
  Trial run(options);
  run.fit->load(run.saver->restore(prefix));
  EXPECT_EQ(run.fit->run(), StopReason::kDone);
  remove_tensor_bundle(prefix);
  return run.bytes();
}

TEST(Fit, ResumedEqualsUninterruptedBitForBit) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
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
    run.saver->save(prefix, extras);
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
    if (report.step == 1) first = report.metric;
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

TEST(Fit, RefusesBadOptions) {
  const auto error_of = [](auto change) {
    Trial::Options options = options_of(DType::kFloat32);
    change(options.fit);
    try {
      Trial run(options);
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string();
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

TEST(RunConfig, GoesThroughJson) {
  RunConfig config;
  config.task = "series";
  config.model.mode = RnnMode::kGru;
  config.model.dropout = 0.1;
  config.fit.schedule.learning_rate = 0.1;
  config.columns = {"a", "b,\"c\""};
  config.input = "f\xff.csv";
  const RunConfig back = run_config_from_json(to_json(config));
  EXPECT_EQ(back.model.mode, RnnMode::kGru);
  EXPECT_EQ(back.fit.schedule.learning_rate, 0.1);
  EXPECT_EQ(back.columns, config.columns);
  EXPECT_EQ(to_json(back), to_json(config));
  EXPECT_THROW(run_config_from_json("{}"), ArgumentError);
  EXPECT_THROW(run_config_from_json("{"), ArgumentError);
}

TEST(Fingerprint, TellsBytesApart) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
}

}  // namespace
}  // namespace openrnn::train
