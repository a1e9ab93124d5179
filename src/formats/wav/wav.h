// Sound as WAVE files hold it.
#pragma once

#include "formats/file/byte_source.h"
#include "openrnn/base.h"

namespace openrnn::formats {

/// The samples [frames, channels] as float32: integers of 8, 16, 24 or 32 bits as fractions of the
/// largest, -1 to 1, floating ones as they are. Throws: FormatError for a malformed file;
/// UnsupportedError for another coding.
Array read_wav(const ByteSource& file);

}  // namespace openrnn::formats
