// Strings and numbers as arrays of NumPy.
#pragma once

#include "formats/npy/header.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// Whether an array of these bytes can be a value: of rank 0 or 1, of strings, int64, float64 or
/// bool, and small.
bool is_npz_value(const NpyHeader& header, std::uint64_t bytes);
/// Its value. Throws: FormatError for characters that are none, and for what is no value.
PlainValue read_npz_value(const ByteSource& file, const NpyHeader& header);

/// The whole file that numpy.load reads as the value. Strings are of Unicode, or of bytes where
/// they are not UTF-8; None is an empty array of bool.
std::string npz_value(const PlainValue& value);

}  // namespace openrnn::formats
