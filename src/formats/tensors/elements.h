// The elements of a tensor, wherever its file has them.
#pragma once

#include "formats/tensors/contents.h"

namespace openrnn::formats {

/// Throws: UnsupportedError if a tensor has more elements than its storage: a file of some hundred
/// bytes could ask for all memory.
void require_stored_elements(const FileContents& contents, std::size_t tensor);
/// Copies them in row-major order to `out`, which has room for the tensor's bytes.
/// Throws: FormatError for a wrong checksum, IoError.
void copy_elements(const FileContents& contents, std::size_t tensor, void* out);
/// Calls `visit` with all of them in row-major order, some whole rows of `row_bytes` at a time. A
/// wrong checksum is thrown after the last call. Throws: as copy_elements.
void visit_elements(const FileContents& contents, std::size_t tensor, std::uint64_t row_bytes,
                    const std::function<void(std::string_view bytes)>& visit);
/// Throws: FormatError unless the extent has its checksum, if it has one.
void verify_extent(const FileContents& contents, std::size_t extent);

}  // namespace openrnn::formats
