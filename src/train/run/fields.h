// The options of a run in one table: what the checks, the resume check and the bindings walk. Those
// of its network are in the table of network_options.h.
#pragma once

#include <limits>
#include <tuple>

#include "openrnn/train_run.h"

namespace openrnn::train {

/// One option that a run may leave unset.
template <class T>
struct RunField {
  using Value = T;
  const char* name;
  std::optional<T> RunOptions::*option;
  /// What a run has of it; null for what is looked at in another way.
  T (*of_run)(const RunConfig&) = nullptr;
  /// The least that a whole number may be.
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  /// The only task that takes it; null: both do.
  const char* task = nullptr;
};

using ConfigRef = const RunConfig&;

/// In the order in which they are compared with those of the run to resume.
inline constexpr std::tuple kRunFields{
    RunField<std::string>{"task", &RunOptions::task, [](ConfigRef c) { return c.task; }},
    RunField<std::string>{"input", &RunOptions::input},
    RunField<TextLevel>{.name = "level",
                        .option = &RunOptions::level,
                        .of_run = [](ConfigRef c) { return c.level; },
                        .task = "text"},
    RunField<std::int64_t>{"embedding", &RunOptions::embedding,
                           [](ConfigRef c) { return c.model.embedding; }, 0, "text"},
    RunField<std::string>{.name = "valid", .option = &RunOptions::valid, .task = "text"},
    RunField<std::vector<std::string>>{.name = "columns",
                                       .option = &RunOptions::columns,
                                       .of_run = [](ConfigRef c) { return c.columns; },
                                       .task = "series"},
    RunField<std::int64_t>{"horizon", &RunOptions::horizon, [](ConfigRef c) { return c.horizon; },
                           1, "series"},
    RunField<std::string>{
        .name = "target",
        .option = &RunOptions::target,
        .of_run = [](ConfigRef c) { return std::string(c.to_sequence ? "sequence" : "one"); },
        .task = "series"},
    RunField<double>{"valid_fraction", &RunOptions::valid_fraction,
                     [](ConfigRef c) { return c.valid_fraction; }},
    RunField<std::int64_t>{"batch", &RunOptions::batch, [](ConfigRef c) { return c.batch; }, 1},
    RunField<std::int64_t>{"seq_len", &RunOptions::seq_len, [](ConfigRef c) { return c.seq_len; },
                           1},
    RunField<std::string>{"optimizer", &RunOptions::optimizer,
                          [](ConfigRef c) { return c.optimizer; }},
    RunField<double>{"lr", &RunOptions::lr,
                     [](ConfigRef c) { return c.fit.schedule.learning_rate; }},
    RunField<ScheduleKind>{"lr_schedule", &RunOptions::lr_schedule,
                           [](ConfigRef c) { return c.fit.schedule.kind; }},
    RunField<std::int64_t>{"warmup", &RunOptions::warmup,
                           [](ConfigRef c) { return c.fit.schedule.warmup_steps; }, 0},
    RunField<double>{"clip_norm", &RunOptions::clip_norm,
                     [](ConfigRef c) { return c.fit.clip_norm; }},
    RunField<std::int64_t>{"micro_batches", &RunOptions::micro_batches,
                           [](ConfigRef c) { return c.fit.micro_batches; }, 1},
    RunField<std::int64_t>{"valid_every", &RunOptions::valid_every,
                           [](ConfigRef c) { return c.fit.validate_every; }, 0},
    RunField<std::int64_t>{"patience", &RunOptions::patience,
                           [](ConfigRef c) { return c.fit.patience; }, 0},
    RunField<std::int64_t>{.name = "epochs", .option = &RunOptions::epochs, .least = 1},
    RunField<std::int64_t>{.name = "steps", .option = &RunOptions::steps, .least = 0},
};

/// Calls `visit` with each field in turn.
template <class Visit>
void each_run_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kRunFields);
}

}  // namespace openrnn::train
