// An entry of a zip archive as a file of its own.
#pragma once

#include <memory>

#include "formats/zip/zip_reader.h"

namespace openrnn::formats {

/// A stored entry is a part of the archive's file; a deflated one is decompressed when it is read:
/// from its start as far as needed, and whole for what lies further. The whole of a deflated entry
/// is compared with its checksum; of a stored one nothing is. The archive's file outlives it.
/// Throws: UnsupportedError for other methods and encryption; FormatError for sizes that disagree.
std::unique_ptr<ByteSource> entry_source(const ZipArchive& archive, const ZipEntry& entry);

}  // namespace openrnn::formats
