// From options to a run's configuration: every default, every bound, and what a resumed run takes.
#include "train/run/resolve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"
#include "train/run/option_error.h"

namespace openrnn::train {
namespace {

TEST(NewRun, HasTheDefaultsOfItsTask) {
  const RunConfig text = new_config({});
  EXPECT_EQ(text.task, "text");
  EXPECT_EQ(text.level, TextLevel::kByte);
  EXPECT_EQ(text.valid_fraction, 0.05);
  EXPECT_EQ(text.model.embedding, 64);
  EXPECT_EQ(text.seq_len, 100);
  const RunConfig series = new_config({.task = "series", .embedding = 8});
  EXPECT_EQ(series.task, "series");
  EXPECT_EQ(series.valid_fraction, 0.2);
  EXPECT_EQ(series.model.embedding, 0);
  EXPECT_EQ(series.seq_len, 24);
  EXPECT_EQ(series.horizon, 1);
  EXPECT_TRUE(series.to_sequence);
  EXPECT_TRUE(series.columns.empty());
  EXPECT_FALSE(new_config({.task = "series", .target = "one"}).to_sequence);
  for (const RunConfig& config : {text, series}) {
    EXPECT_EQ(config.input, "");
    EXPECT_EQ(config.valid, "");
    EXPECT_EQ(config.batch, 32);
    EXPECT_EQ(config.optimizer, "adam");
    EXPECT_EQ(config.fit.clip_norm, 1.0);
    EXPECT_EQ(config.fit.micro_batches, 1);
    EXPECT_EQ(config.fit.patience, 0);
    EXPECT_EQ(config.fit.schedule.kind, ScheduleKind::kCosine);
  }
}

TEST(NewRun, PartsDivideTheBatch) {
  EXPECT_EQ(new_config({.micro_batches = 32}).fit.micro_batches, 32);
  EXPECT_EQ(new_config({.batch = 6, .micro_batches = 3}).fit.micro_batches, 3);
  expect_error<OptionError>([] { new_config({.micro_batches = 3}); },
                            "[Run] micro_batches 3 with batch 32, expected a divisor of it: parts "
                            "are of equal size");
  expect_error<OptionError>([] { check_ranges({.micro_batches = 0}); },
                            "[Run] micro_batches 0, expected 1 or more");
}

TEST(NewRun, TakesWhatIsGiven) {
  const RunConfig config = new_config({.input = "a",
                                       .valid = "b",
                                       .valid_fraction = 0.3,
                                       .level = TextLevel::kChar,
                                       .columns = {{"x", "y"}},
                                       .horizon = 6,
                                       .embedding = 0,
                                       .batch = 5,
                                       .seq_len = 7,
                                       .optimizer = "sgd",
                                       .lr = 0.125,
                                       .lr_schedule = ScheduleKind::kExponential,
                                       .clip_norm = 0.0,
                                       .patience = 3});
  EXPECT_EQ(config.input, "a");
  EXPECT_EQ(config.valid, "b");
  EXPECT_EQ(config.valid_fraction, 0.3);
  EXPECT_EQ(config.level, TextLevel::kChar);
  EXPECT_EQ(config.columns, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(config.horizon, 6);
  EXPECT_EQ(config.model.embedding, 0);
  EXPECT_EQ(config.batch, 5);
  EXPECT_EQ(config.seq_len, 7);
  EXPECT_EQ(config.optimizer, "sgd");
  EXPECT_EQ(config.fit.schedule.learning_rate, 0.125);
  EXPECT_EQ(config.fit.schedule.kind, ScheduleKind::kExponential);
  EXPECT_EQ(config.fit.clip_norm, 0.0);
  EXPECT_EQ(config.fit.patience, 3);
}

TEST(NewRun, EachOptimizerHasItsRate) {
  const std::pair<const char*, double> rates[] = {{"sgd", 0.5},       {"momentum", 0.5},
                                                  {"nesterov", 0.5},  {"adagrad", 0.05},
                                                  {"rmsprop", 0.004}, {"adam", 0.004}};
  for (const auto& [optimizer, rate] : rates) {
    EXPECT_EQ(new_config({.optimizer = optimizer}).fit.schedule.learning_rate, rate) << optimizer;
  }
}

FitOptions resolved(const RunOptions& options, std::int64_t windows) {
  RunConfig config = new_config(options);
  resolve_steps(options, windows, config);
  EXPECT_EQ(config.epochs, options.epochs.value_or(0));
  return config.fit;
}

TEST(NewRun, StepsAndWhatHangsOnThem) {
  struct Case {
    RunOptions options;
    std::int64_t windows, steps, validate_every, warmup;
  };
  const Case cases[] = {
      {{}, 7, 500, 25, 25},   // no fewer than 500
      {{}, 50, 500, 25, 25},  // ten passes
      {{}, 51, 510, 25, 25},
      {{}, 400, 4000, 200, 100},     // a warm-up of at most 100
      {{}, 3000, 20000, 1000, 100},  // no more than 20000
      {{.epochs = 3}, 9, 27, 1, 1},
      {{.epochs = 1}, 50000, 50000, 2500, 100},
      {{.steps = 0}, 9, 0, 1, 0},
      {{.steps = 19}, 9, 19, 1, 0},
      {{.steps = 45}, 9, 45, 2, 2},
      {{.steps = 40, .warmup = 0, .valid_every = 0}, 9, 40, 0, 0},
      {{.steps = 40, .warmup = 31, .valid_every = 7}, 9, 40, 7, 31},
  };
  for (const Case& each : cases) {
    const FitOptions fit = resolved(each.options, each.windows);
    EXPECT_EQ(fit.steps, each.steps) << each.windows;
    EXPECT_EQ(fit.validate_every, each.validate_every) << each.steps;
    EXPECT_EQ(fit.schedule.warmup_steps, each.warmup) << each.steps;
    EXPECT_EQ(fit.schedule.decay_steps, std::max<std::int64_t>(each.steps, 1));
    EXPECT_EQ(fit.schedule.final_fraction, 0.05);
  }
  const auto halved = [](std::int64_t steps) {
    return resolved({.steps = steps, .lr_schedule = ScheduleKind::kExponential}, 9)
        .schedule.decay_steps;
  };
  EXPECT_EQ(halved(1004), 200);
  EXPECT_EQ(halved(4), 1);
}

TEST(Options, EveryWholeNumberHasItsLeast) {
  const auto expect = [](const char* name, std::int64_t least, auto member) {
    RunOptions options;
    options.*member = least;
    check_ranges(options);
    options.*member = least - 1;
    expect_error<OptionError>([&] { check_ranges(options); },
                              "[Run] " + std::string(name) + " " + std::to_string(least - 1) +
                                  ", expected " + std::to_string(least) + " or more");
  };
  expect("embedding", 0, &RunOptions::embedding);
  expect("horizon", 1, &RunOptions::horizon);
  expect("batch", 1, &RunOptions::batch);
  expect("seq_len", 1, &RunOptions::seq_len);
  expect("warmup", 0, &RunOptions::warmup);
  expect("valid_every", 0, &RunOptions::valid_every);
  expect("patience", 0, &RunOptions::patience);
  expect("epochs", 1, &RunOptions::epochs);
  expect("steps", 0, &RunOptions::steps);
  expect("save_steps", 0, &RunOptions::save_steps);
  expect("recompute", 0, &RunOptions::recompute);
  for (const double seconds : {-1e-9, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(check_ranges({.save_seconds = seconds}), OptionError) << seconds;
  }
  check_ranges({.save_seconds = 0.0, .keep = 0});
  expect_error<OptionError>([] { check_ranges({.target = "all"}); },
                            "[Run] target 'all', expected one of one, sequence");
}

TEST(Options, OfTheOtherTaskAreRefused) {
  const auto refused = [](const RunOptions& options, const std::string& task) {
    return error_of<OptionError>([&] { check_together(options, task); });
  };
  const std::pair<const char*, RunOptions> of_text[] = {{"level", {.level = TextLevel::kByte}},
                                                        {"embedding", {.embedding = 1}},
                                                        {"valid", {.valid = "v"}}};
  const std::pair<const char*, RunOptions> of_series[] = {{"columns", {.columns = {{"x"}}}},
                                                          {"horizon", {.horizon = 1}},
                                                          {"target", {.target = "one"}}};
  for (const auto& [name, options] : of_text) {
    EXPECT_EQ(refused(options, "text"), "");
    EXPECT_EQ(refused(options, "series"),
              "[Run] " + std::string(name) + " with task series, expected it with task text alone");
  }
  for (const auto& [name, options] : of_series) {
    EXPECT_EQ(refused(options, "series"), "");
    EXPECT_EQ(refused(options, "text"),
              "[Run] " + std::string(name) + " with task text, expected it with task series alone");
  }
}

TEST(Options, TwoThatSayTheSameAreRefused) {
  const auto refused = [](const RunOptions& options) {
    return error_of<OptionError>([&] { check_together(options, "text"); });
  };
  EXPECT_EQ(refused({.epochs = 1, .steps = 1}), "[Run] steps and epochs, expected one of the two");
  EXPECT_EQ(refused({.valid = "v", .valid_fraction = 0.1}),
            "[Run] valid and valid_fraction, expected one of the two");
  EXPECT_EQ(refused({.valid_every = 0, .patience = 1}),
            "[Run] patience and valid_every 0, expected one of the two");
  EXPECT_EQ(refused({.valid = "v", .epochs = 1, .valid_every = 0, .patience = 0}), "");
  EXPECT_EQ(refused({.valid_fraction = 0.1, .steps = 1, .valid_every = 1, .patience = 1}), "");
}

// Another number of steps is taken over where it changes none that was taken.
TEST(ResumedRun, TakesMoreStepsUnlessItsRateEndsWithThem) {
  const auto resumed = [](ScheduleKind kind, const RunOptions& options) {
    const RunOptions first{.steps = 40, .lr_schedule = kind};
    RunConfig config = new_config(first);
    resolve_steps(first, 10, config);
    const std::string error = error_of<OptionError>([&] { agree(options, 10, config); });
    return error.empty() ? std::to_string(config.fit.steps) : error;
  };
  const std::string middle = " contradicts the run to resume, expected ";
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kExponential}) {
    EXPECT_EQ(resumed(kind, {}), "40");
    EXPECT_EQ(resumed(kind, {.steps = 41}), "41");
    EXPECT_EQ(resumed(kind, {.epochs = 4}), "40");
    EXPECT_EQ(resumed(kind, {.epochs = 5}), "50");
    EXPECT_EQ(resumed(kind, {.steps = 39}), "[Run] steps 39" + middle + "steps 40");
    EXPECT_EQ(resumed(kind, {.epochs = 3}), "[Run] epochs 3" + middle + "epochs 4");
  }
  EXPECT_EQ(resumed(ScheduleKind::kCosine, {.steps = 40}), "40");
  EXPECT_EQ(resumed(ScheduleKind::kCosine, {.epochs = 4}), "40");
  EXPECT_EQ(resumed(ScheduleKind::kCosine, {.steps = 41}), "[Run] steps 41" + middle + "steps 40");
  EXPECT_EQ(resumed(ScheduleKind::kCosine, {.epochs = 5}), "[Run] epochs 5" + middle + "epochs 4");
}

TEST(ResumedRun, EveryOptionOfASeriesIsCompared) {
  const RunOptions first{.task = "series",
                         .valid_fraction = 0.25,
                         .columns = {{"low", "high"}},
                         .horizon = 3,
                         .target = "one",
                         .steps = 40,
                         .lr_schedule = ScheduleKind::kConstant,
                         .warmup = 2,
                         .valid_every = 7,
                         .patience = 4};
  RunConfig config = new_config(first);
  resolve_steps(first, 10, config);
  config.columns = {"low", "high"};
  const auto said = [&](const auto& change) {
    RunOptions options = first;
    options.steps = std::nullopt;
    change(options);
    RunConfig of_run = config;
    return error_of<OptionError>([&] { agree(options, 10, of_run); });
  };
  const std::string middle = " contradicts the run to resume, expected ";
  EXPECT_EQ(said([](auto&) {}), "");
  EXPECT_EQ(said([](auto& o) {
              o.columns = {{"high", "low"}};
            }),
            "[Run] columns high,low" + middle + "columns low,high");
  EXPECT_EQ(said([](auto& o) { o.columns = {{"low"}}; }),
            "[Run] columns low" + middle + "columns low,high");
  EXPECT_EQ(said([](auto& o) { o.horizon = 2; }), "[Run] horizon 2" + middle + "horizon 3");
  EXPECT_EQ(said([](auto& o) { o.target = "sequence"; }),
            "[Run] target sequence" + middle + "target one");
  EXPECT_EQ(said([](auto& o) { o.valid_fraction = 0.5; }),
            "[Run] valid_fraction 0.5" + middle + "valid_fraction 0.25");
  EXPECT_EQ(said([](auto& o) { o.lr_schedule = ScheduleKind::kCosine; }),
            "[Run] lr_schedule cosine" + middle + "lr_schedule constant");
  EXPECT_EQ(said([](auto& o) { o.warmup = 3; }), "[Run] warmup 3" + middle + "warmup 2");
  EXPECT_EQ(said([](auto& o) { o.valid_every = 8; }),
            "[Run] valid_every 8" + middle + "valid_every 7");
  EXPECT_EQ(said([](auto& o) { o.patience = 0; }), "[Run] patience 0" + middle + "patience 4");
  EXPECT_EQ(said([](auto& o) { o.seq_len = 25; }), "[Run] seq_len 25" + middle + "seq_len 24");
  EXPECT_EQ(said([](auto& o) { o.batch = 31; }), "[Run] batch 31" + middle + "batch 32");
  EXPECT_EQ(said([](auto& o) { o.optimizer = "sgd"; }),
            "[Run] optimizer sgd" + middle + "optimizer adam");
  EXPECT_EQ(said([](auto& o) { o.lr = 0.0045; }), "[Run] lr 0.0045" + middle + "lr 0.004");
  EXPECT_EQ(said([](auto& o) { o.clip_norm = 0.0; }), "[Run] clip_norm 0" + middle + "clip_norm 1");
  EXPECT_EQ(said([](auto& o) { o.micro_batches = 2; }),
            "[Run] micro_batches 2" + middle + "micro_batches 1");
}

}  // namespace
}  // namespace openrnn::train
