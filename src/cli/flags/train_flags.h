// The flags of `openrnn train`.
#pragma once

#include "cli/flags.h"
#include "cli/flags/options.h"

namespace openrnn::cli {

void add_train(CLI::App& tool, TrainFlags& flags);

}  // namespace openrnn::cli
