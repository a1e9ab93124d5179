// Files of torch.save and of TorchScript.
#pragma once

#include "formats/tensors/contents.h"
#include "formats/zip/zip_reader.h"

namespace openrnn::formats {

/// Where a zip archive has its pickle: 'NAME/' of NAME/data.pkl, if there is exactly one.
std::optional<std::string> find_torch_root(const ZipArchive& archive);
/// kTorchScript where the archive has constants beside.
FileKind kind_of_torch_zip(const ZipArchive& archive, const std::string& root);
/// Whether a file begins as torch.save wrote it before it wrote zip archives.
bool starts_as_legacy_torch(std::string_view head);

/// Throws: FormatError, UnsupportedError, IoError.
FileContents read_torch_zip(std::unique_ptr<ByteSource> file);
FileContents read_torch_legacy(std::unique_ptr<ByteSource> file);

}  // namespace openrnn::formats
