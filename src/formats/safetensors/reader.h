// safetensors: a length, a header in JSON, then the bytes of the tensors without gaps.
#pragma once

#include "formats/tensors/contents.h"

namespace openrnn::formats {

/// The reference implementation refuses longer headers, too.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Throws: FormatError, IoError.
FileContents read_safetensors(std::unique_ptr<ByteSource> file);

/// The files that an index names, as one; `open` opens one of them by its name.
/// Throws: FormatError, also unless the index names exactly the tensors of its files; IoError.
FileContents read_safetensors_index(const ByteSource& index, const SourceOpener& open);

}  // namespace openrnn::formats
