// From options to a run's configuration: defaults for a new run, agreement with the old one.
#pragma once

#include "openrnn/train_run.h"

namespace openrnn::train {

/// Throws: OptionError for an option out of range.
void check_ranges(const RunOptions& options);
/// Throws: OptionError for an option that the task does not take, or for two that exclude each
/// other; names both.
void check_together(const RunOptions& options, const std::string& task);

/// What the options say of everything but the data's sizes and the number of steps.
RunConfig new_config(const RunOptions& options);

/// Puts the number of steps, and what hangs on it, into a new run's configuration.
void resolve_steps(const RunOptions& options, std::int64_t windows, RunConfig& config);

/// Throws: OptionError naming the first option that is given and is not what the run has, with both
/// values. Takes over a number of steps that changes no step that was taken.
void agree(const RunOptions& options, std::int64_t windows, RunConfig& config);

}  // namespace openrnn::train
