// Event files as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "openrnn/formats.h"

namespace openrnn::formats {

/// The scalars of an event file's bytes; `path` is for messages. Throws: FormatError.
std::vector<ScalarEvent> decode_scalar_events(const std::string& path, std::string_view bytes);

}  // namespace openrnn::formats
