// Whole models of files, run and compared by the tool.
#pragma once

#include "cli/flags.h"
#include "openrnn/mapping.h"

namespace openrnn::cli {

/// Whether a model is more than its networks, each behind an input of its own.
bool is_whole(const MappedModel& model);
/// The model over the input file; writes the output file. Throws: ArgumentError for flags that are
/// of one network.
void run_whole(const RunFlags& flags, const MappedModel& model);

/// The largest difference of the outputs of both on random input, and how many there are. Throws:
/// ArgumentError for models of other inputs or outputs.
struct WholeDifference {
  double largest = 0.0;
  std::int64_t values = 0;
};
WholeDifference whole_difference(const MappedModel& a, const MappedModel& b);

}  // namespace openrnn::cli
