// Flags of the subcommands on model files.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/flags.h"

namespace openrnn::cli {

void add_inspect(CLI::App& tool, InspectFlags& flags);
void add_convert(CLI::App& tool, ConvertFlags& flags);
void add_run(CLI::App& tool, RunFlags& flags);

}  // namespace openrnn::cli
