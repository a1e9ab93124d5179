// The `checkpoint` state file as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "openrnn/formats.h"

namespace openrnn::formats {

/// The state that the text of FOLDER/checkpoint says. Throws: FormatError.
CheckpointState decode_checkpoint_state(const std::string& folder, std::string_view text);

/// The prefix that FOLDER/checkpoint names as the latest, if its files exist; else the newest
/// listed one whose files do; else nothing. A run may save and remove others meanwhile. Throws:
/// FormatError for a broken state file.
std::optional<std::string> latest_checkpoint_in(const std::string& folder);

}  // namespace openrnn::formats
