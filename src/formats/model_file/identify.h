// What a file is, by its content.
#pragma once

#include "formats/file/byte_source.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// As identify_file.
FoundFile identify(const ByteSource& file);

}  // namespace openrnn::formats
