// Archives of numpy.savez and savez_compressed.
#pragma once

#include "formats/tensors/contents.h"
#include "formats/zip/zip_reader.h"

namespace openrnn::formats {

/// Whether all of its entries are arrays by their names, and there are some.
bool is_npz(const ZipArchive& archive);

/// Strings of rank 0 and 1, and what the array kNpzValues names, are values; all else is tensors.
/// Throws: FormatError, UnsupportedError, IoError.
FileContents read_npz(std::unique_ptr<ByteSource> file);

/// The array of the names of values, which would be tensors by their types.
inline constexpr std::string_view kNpzValues = "openrnn.values";

}  // namespace openrnn::formats
