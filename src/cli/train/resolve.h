// From flags to a run's configuration: defaults for a new run, agreement with the old one.
#pragma once

#include "cli/flags.h"
#include "openrnn/train_fit.h"

namespace openrnn::cli {

/// Throws: ArgumentError for a flag that the task does not take, or for two that exclude each
/// other; names both.
void check_flags(const TrainFlags& flags, const std::string& task);

/// What the flags say of everything but the data's sizes and the number of steps.
train::RunConfig new_config(const TrainFlags& flags);

/// Puts the number of steps, and what hangs on it, into a new run's configuration.
void resolve_steps(const TrainFlags& flags, std::int64_t windows, train::RunConfig& config);

/// Throws: ArgumentError naming the first flag that is given and is not what the run has, with both
/// values. Takes over --steps, where they change no step that was taken.
void agree(const TrainFlags& flags, std::int64_t windows, train::RunConfig& config);

}  // namespace openrnn::cli
