// The options of a run that are fields of its network: the table of fields, joined with the names,
// defaults and bounds of a run.
#pragma once

#include <limits>

#include "openrnn/spec_fields.h"
#include "openrnn/train_run.h"

namespace openrnn::train {

/// One option of a run's network.
struct NetworkOption {
  const RnnField* field = nullptr;
  std::string name;
  /// One line, with the default.
  std::string help;
  /// The least that a whole number may be.
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  /// Every file of a run has it; any other is there only where it is not at its default.
  bool always = false;
  /// It has been in every file from the first version on, so that one without it is no run's.
  bool required = false;

  bool stands_in(const RnnSpec& network) const {
    return always || field->get(network) != field->default_value();
  }
};

/// Every field of a network that a run may choose, in the order of rnn_fields().
const std::vector<NetworkOption>& network_options();
/// Null when there is none of that name.
const NetworkOption* find_network_option(std::string_view name);

/// Sets what the options give. Throws: OptionError for a name that is no option, and for a number
/// out of range or not finite; as RnnField::put.
void set_network(const RunOptions& options, RnnSpec& network);
/// The network of a new run. Throws: as set_network and RnnSpec::validate.
RnnSpec new_network(const RunOptions& options);
/// Throws: OptionError naming the first option that is given and is not what the run has, with both
/// values.
void agree_on_network(const RunOptions& options, const RnnSpec& of_run);

}  // namespace openrnn::train
