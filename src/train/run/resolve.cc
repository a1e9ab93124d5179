#include "train/run/resolve.h"

#include <algorithm>
#include <cmath>

#include "base/excerpt.h"
#include "train/run/fields.h"
#include "train/run/network_options.h"
#include "train/run/option_error.h"
#include "train/run/text_of.h"

namespace openrnn::train {
namespace {

constexpr double kCosineEnd = 0.05;
constexpr std::int64_t kEpochs = 10, kFewestSteps = 500, kMostSteps = 20000;
constexpr std::int64_t kValidations = 20, kMostWarmUp = 100;

double default_rate(const std::string& optimizer) {
  if (optimizer == "sgd" || optimizer == "momentum" || optimizer == "nesterov") return 0.5;
  return optimizer == "adagrad" ? 0.05 : 0.004;
}

/// Compares one option, if given, with what the run has.
template <class T>
void same(const char* name, const std::optional<T>& given, const T& of_run) {
  if (!given || text_of(*given) == text_of(of_run)) return;
  refuse_option(Option{name}, " ", excerpt(text_of(*given)),
                " contradicts the run to resume, expected ", Option{name}, " ",
                excerpt(text_of(of_run)));
}

void not_both(const char* one, bool has_one, const char* other, bool has_other,
              const char* value = "") {
  if (!has_one || !has_other) return;
  refuse_option(Option{one}, " and ", Option{other}, value, ", expected one of the two");
}

void one_of(const char* name, const std::optional<std::string>& value, const char* first,
            const char* second) {
  if (!value || *value == first || *value == second) return;
  refuse_option(Option{name}, " '", excerpt(*value), "', expected one of ", first, ", ", second);
}

void at_least(const char* name, std::int64_t value, std::int64_t least) {
  if (value < least) refuse_option(Option{name}, " ", value, ", expected ", least, " or more");
}

}  // namespace

void check_ranges(const RunOptions& options) {
  one_of("task", options.task, "text", "series");
  one_of("target", options.target, "one", "sequence");
  each_run_field([&](const auto& field) {
    if constexpr (std::is_same_v<typename std::decay_t<decltype(field)>::Value, std::int64_t>) {
      if (const auto& value = options.*field.option) at_least(field.name, *value, field.least);
    }
  });
  RnnSpec ignored;
  set_network(options, ignored);
  at_least("save_steps", options.save_steps, 0);
  at_least("keep", options.keep, 0);
  at_least("recompute", options.recompute, 0);
  if (!(options.save_seconds >= 0.0) || !std::isfinite(options.save_seconds)) {
    refuse_option(Option{"save_seconds"}, " ", options.save_seconds,
                  ", expected a finite number of 0 or more");
  }
}

void check_together(const RunOptions& options, const std::string& task) {
  each_run_field([&](const auto& field) {
    if (!field.task || task == field.task || !(options.*field.option)) return;
    refuse_option(Option{field.name}, " with ", Option{"task"}, " ", task, ", expected it with ",
                  Option{"task"}, " ", field.task, " alone");
  });
  not_both("steps", options.steps.has_value(), "epochs", options.epochs.has_value());
  not_both("valid", options.valid.has_value(), "valid_fraction",
           options.valid_fraction.has_value());
  // Patience counts validations, and there would be one alone.
  not_both("patience", options.patience.value_or(0) > 0, "valid_every", options.valid_every == 0,
           " 0");
}

RunConfig new_config(const RunOptions& options) {
  RunConfig config;
  config.task = options.task.value_or("text");
  const bool text = config.task == "text";
  config.level = options.level.value_or(TextLevel::kByte);
  config.columns = options.columns.value_or(std::vector<std::string>{});
  config.horizon = options.horizon.value_or(1);
  config.to_sequence = options.target.value_or("sequence") == "sequence";
  config.valid_fraction = options.valid_fraction.value_or(text ? 0.05 : 0.2);
  config.input = options.input.value_or("");
  config.valid = options.valid.value_or("");

  config.model.network = new_network(options);
  config.model.embedding = text ? options.embedding.value_or(64) : 0;

  config.batch = options.batch.value_or(32);
  config.seq_len = options.seq_len.value_or(text ? 100 : 24);
  config.optimizer = options.optimizer.value_or("adam");
  config.fit.clip_norm = options.clip_norm.value_or(1.0);
  config.fit.micro_batches = options.micro_batches.value_or(1);
  if (config.batch % config.fit.micro_batches != 0) {
    refuse_option(Option{"micro_batches"}, " ", config.fit.micro_batches, " with ", Option{"batch"},
                  " ", config.batch, ", expected a divisor of it: parts are of equal size");
  }
  config.fit.patience = options.patience.value_or(0);
  Schedule& schedule = config.fit.schedule;
  schedule.kind = options.lr_schedule.value_or(ScheduleKind::kCosine);
  schedule.learning_rate = options.lr.value_or(default_rate(config.optimizer));
  return config;
}

void resolve_steps(const RunOptions& options, std::int64_t windows, RunConfig& config) {
  FitOptions& fit = config.fit;
  if (options.steps) {
    fit.steps = *options.steps;
  } else if (options.epochs) {
    config.epochs = *options.epochs;
    fit.steps = *options.epochs * windows;
  } else {
    fit.steps = std::clamp(kEpochs * windows, kFewestSteps, kMostSteps);
  }
  fit.validate_every =
      options.valid_every.value_or(std::max<std::int64_t>(1, fit.steps / kValidations));
  Schedule& schedule = fit.schedule;
  schedule.warmup_steps = options.warmup.value_or(std::min(kMostWarmUp, fit.steps / 20));
  schedule.final_fraction = kCosineEnd;
  if (schedule.kind == ScheduleKind::kCosine) {
    schedule.decay_steps = std::max<std::int64_t>(1, fit.steps);
  } else if (schedule.kind == ScheduleKind::kExponential) {
    // Halved five times over the run.
    schedule.decay_steps = std::max<std::int64_t>(1, fit.steps / 5);
  }
  schedule.validate();
}

void agree(const RunOptions& options, std::int64_t windows, RunConfig& config) {
  each_run_field([&](const auto& field) {
    if (field.of_run) same(field.name, options.*field.option, field.of_run(config));
  });
  agree_on_network(options, config.model.network);
  std::int64_t steps = config.fit.steps;
  if (options.steps) {
    steps = *options.steps;
  } else if (options.epochs) {
    steps = *options.epochs * windows;
  }
  if (steps == config.fit.steps) return;
  // A cosine ends where the run does, so another end would have had other steps from the start.
  if (config.fit.schedule.kind == ScheduleKind::kCosine || steps < config.fit.steps) {
    const bool by_steps = options.steps.has_value();
    same(by_steps ? "steps" : "epochs", by_steps ? options.steps : options.epochs,
         by_steps ? config.fit.steps : config.fit.steps / windows);
  }
  config.fit.steps = steps;
}

}  // namespace openrnn::train
