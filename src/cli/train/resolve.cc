#include "cli/train/resolve.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/excerpt.h"

namespace openrnn::cli {
namespace {

constexpr double kCosineEnd = 0.05;
constexpr std::int64_t kEpochs = 10, kFewestSteps = 500, kMostSteps = 20000;
constexpr std::int64_t kValidations = 20, kMostWarmUp = 100;

double default_rate(const std::string& optimizer) {
  if (optimizer == "sgd" || optimizer == "momentum" || optimizer == "nesterov") return 0.5;
  return optimizer == "adagrad" ? 0.05 : 0.004;
}

std::string text_of(const std::string& value) { return value; }
std::string text_of(std::string_view value) { return std::string(value); }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text.append(text.empty() ? "" : ",").append(value);
  return text;
}

/// Compares one flag, if given, with what the run has.
template <class Flag, class Value>
void same(const char* name, const std::optional<Flag>& flag, const Value& of_run) {
  if (!flag || text_of(*flag) == text_of(of_run)) return;
  throw ArgumentError(fmt::format("[train] {} {} contradicts the run to resume, expected {} {}",
                                  name, excerpt(text_of(*flag)), name, excerpt(text_of(of_run))));
}

void agree_on_model(const TrainFlags& flags, const train::RunConfig& config) {
  const train::ModelConfig& model = config.model;
  same("--task", flags.task, config.task);
  same("--level", flags.level, to_string(config.level));
  same("--cell", flags.cell, openrnn::to_string(model.mode));
  same("--layers", flags.layers, model.layers);
  same("--units", flags.units, model.units);
  same("--embedding", flags.embedding, model.embedding);
  same("--dropout", flags.dropout, model.dropout);
  same("--dtype", flags.dtype, dtype_name(model.dtype));
  same("--math", flags.math, openrnn::to_string(model.math));
  same("--seed", flags.seed, static_cast<std::int64_t>(model.seed));
  same("--horizon", flags.horizon, config.horizon);
  same("--target", flags.target, std::string(config.to_sequence ? "sequence" : "one"));
  same("--valid-fraction", flags.valid_fraction, config.valid_fraction);
}

void agree_on_fit(const TrainFlags& flags, const train::RunConfig& config) {
  const train::FitOptions& fit = config.fit;
  same("--batch", flags.batch, config.batch);
  same("--seq-len", flags.seq_len, config.seq_len);
  same("--optimizer", flags.optimizer, config.optimizer);
  same("--lr", flags.lr, fit.schedule.learning_rate);
  same("--lr-schedule", flags.lr_schedule, to_string(fit.schedule.kind));
  same("--warmup", flags.warmup, fit.schedule.warmup_steps);
  same("--clip-norm", flags.clip_norm, fit.clip_norm);
  same("--valid-every", flags.valid_every, fit.validate_every);
  same("--patience", flags.patience, fit.patience);
}

/// Throws: ArgumentError if any of `given` is, in a run of the other task.
void only_of(const char* owner, const std::string& task,
             std::initializer_list<std::pair<const char*, bool>> flags) {
  if (task == owner) return;
  for (const auto& [name, given] : flags) {
    if (!given) continue;
    throw ArgumentError(fmt::format("[train] {} with --task {}, expected it with --task {} alone",
                                    name, task, owner));
  }
}

void not_both(const char* one, bool has_one, const char* other, bool has_other) {
  if (!has_one || !has_other) return;
  throw ArgumentError(fmt::format("[train] {} and {}, expected one of the two", one, other));
}

}  // namespace

void check_flags(const TrainFlags& flags, const std::string& task) {
  only_of("text", task,
          {{"--level", flags.level.has_value()},
           {"--embedding", flags.embedding.has_value()},
           {"--valid", flags.valid.has_value()}});
  only_of("series", task,
          {{"--columns", flags.columns.has_value()},
           {"--horizon", flags.horizon.has_value()},
           {"--target", flags.target.has_value()}});
  not_both("--steps", flags.steps.has_value(), "--epochs", flags.epochs.has_value());
  not_both("--valid", flags.valid.has_value(), "--valid-fraction",
           flags.valid_fraction.has_value());
  // Patience counts validations, and there would be one alone.
  not_both("--patience", flags.patience.value_or(0) > 0, "--valid-every 0", flags.valid_every == 0);
}

train::RunConfig new_config(const TrainFlags& flags) {
  train::RunConfig config;
  config.task = flags.task.value_or("text");
  const bool text = config.task == "text";
  config.level = train::parse_text_level(flags.level.value_or("byte"));
  config.columns = flags.columns.value_or(std::vector<std::string>{});
  config.horizon = flags.horizon.value_or(1);
  config.to_sequence = flags.target.value_or("sequence") == "sequence";
  config.valid_fraction = flags.valid_fraction.value_or(text ? 0.05 : 0.2);
  config.input = flags.input.value_or("");
  config.valid = flags.valid.value_or("");

  train::ModelConfig& model = config.model;
  model.mode = parse_rnn_mode(flags.cell.value_or("lstm"));
  model.layers = flags.layers.value_or(1);
  model.units = flags.units.value_or(text ? 256 : 32);
  model.embedding = text ? flags.embedding.value_or(64) : 0;
  model.dropout = flags.dropout.value_or(0.0);
  model.dtype = parse_dtype(flags.dtype.value_or("float32"));
  model.seed = static_cast<std::uint64_t>(flags.seed.value_or(0));
  model.math = parse_math(flags.math.value_or("float32"));

  config.batch = flags.batch.value_or(32);
  config.seq_len = flags.seq_len.value_or(text ? 100 : 24);
  config.optimizer = flags.optimizer.value_or("adam");
  config.fit.clip_norm = flags.clip_norm.value_or(1.0);
  config.fit.patience = flags.patience.value_or(0);
  train::Schedule& schedule = config.fit.schedule;
  schedule.kind = train::parse_schedule(flags.lr_schedule.value_or("cosine"));
  schedule.learning_rate = flags.lr.value_or(default_rate(config.optimizer));
  return config;
}

void resolve_steps(const TrainFlags& flags, std::int64_t windows, train::RunConfig& config) {
  train::FitOptions& fit = config.fit;
  if (flags.steps) {
    fit.steps = *flags.steps;
  } else if (flags.epochs) {
    config.epochs = *flags.epochs;
    fit.steps = *flags.epochs * windows;
  } else {
    fit.steps = std::clamp(kEpochs * windows, kFewestSteps, kMostSteps);
  }
  fit.validate_every =
      flags.valid_every.value_or(std::max<std::int64_t>(1, fit.steps / kValidations));
  train::Schedule& schedule = fit.schedule;
  schedule.warmup_steps = flags.warmup.value_or(std::min(kMostWarmUp, fit.steps / 20));
  schedule.final_fraction = kCosineEnd;
  if (schedule.kind == train::ScheduleKind::kCosine) {
    schedule.decay_steps = std::max<std::int64_t>(1, fit.steps);
  } else if (schedule.kind == train::ScheduleKind::kExponential) {
    // Halved five times over the run.
    schedule.decay_steps = std::max<std::int64_t>(1, fit.steps / 5);
  }
  schedule.validate();
}

void agree(const TrainFlags& flags, std::int64_t windows, train::RunConfig& config) {
  agree_on_model(flags, config);
  agree_on_fit(flags, config);
  if (flags.columns) same("--columns", flags.columns, config.columns);
  std::int64_t steps = config.fit.steps;
  if (flags.steps) {
    steps = *flags.steps;
  } else if (flags.epochs) {
    steps = *flags.epochs * windows;
  }
  if (steps == config.fit.steps) return;
  // A cosine ends where the run does, so another end would have had other steps from the start.
  if (config.fit.schedule.kind == train::ScheduleKind::kCosine || steps < config.fit.steps) {
    const bool by_steps = flags.steps.has_value();
    same(by_steps ? "--steps" : "--epochs", by_steps ? flags.steps : flags.epochs,
         by_steps ? config.fit.steps : config.fit.steps / windows);
  }
  config.fit.steps = steps;
}

}  // namespace openrnn::cli
