// Arrays of numpy.save.
#pragma once

#include "formats/file/byte_source.h"
#include "openrnn/base.h"

namespace openrnn::formats {

/// As read_npy.
Array read_npy(const ByteSource& file);

}  // namespace openrnn::formats
