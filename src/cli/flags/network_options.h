// Flags of a run's network, one for each row of its table.
#pragma once

#include "cli/flags/options.h"
#include "train/run/network_options.h"

namespace openrnn::cli {

/// The words of a field, or the names of the dtypes.
std::vector<std::string> choices_of(const RnnField& field);

/// The option as a flag: one of its words, a number, an activation, two numbers such as -1,1 or one
/// for both sides of 0, or true or false, where the flag alone is true.
void add_network_option(CLI::App* app, const train::NetworkOption& option,
                        std::map<std::string, FieldValue>& network);

}  // namespace openrnn::cli
