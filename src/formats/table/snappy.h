// Raw snappy, as LevelDB tables hold it: decompression alone, for files that others wrote.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace openrnn::formats {

/// The plain bytes, or nothing if the input is not valid snappy.
std::optional<std::string> snappy_decompress(std::string_view compressed);

}  // namespace openrnn::formats
