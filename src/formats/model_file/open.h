// A model file over any byte sources.
#pragma once

#include "formats/safetensors/reader.h"

namespace openrnn::formats {

/// The tensors of a file of any kind that a ModelFile reads; `open` opens the files that an index
/// names. Throws: FormatError, UnsupportedError, IoError.
FileContents open_contents(std::unique_ptr<ByteSource> file, const SourceOpener& open);

/// The elements, in memory of the size of the tensor. Throws: as ModelFile::read.
Array read_tensor(const FileContents& contents, std::size_t tensor);
/// The same, into memory of that size.
void read_tensor_into(const FileContents& contents, std::size_t tensor, void* out);
using RowVisitor = std::function<void(std::int64_t first, const ConstArrayView& rows)>;
void read_tensor_rows(const FileContents& contents, std::size_t tensor, const RowVisitor& visit);
std::string read_tensor_bytes(const FileContents& contents, std::size_t tensor);
std::optional<ConstArrayView> view_tensor(const FileContents& contents, std::size_t tensor);
/// Compares the checksum of every extent that has one. Throws: FormatError.
void verify_contents(const FileContents& contents);

}  // namespace openrnn::formats
