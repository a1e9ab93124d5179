// The `checkpoint` state file as text.
#pragma once

#include <string>
#include <string_view>

#include "openrnn/formats.h"

namespace openrnn::formats {

/// The state that the text of FOLDER/checkpoint says. Throws: FormatError.
CheckpointState decode_checkpoint_state(const std::string& folder, std::string_view text);

}  // namespace openrnn::formats
