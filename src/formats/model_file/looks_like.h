// What a file that is no model looks like, so that a message can say it.
#pragma once

#include <string>
#include <string_view>

namespace openrnn::formats {

/// 'a PNG image', 'a text file', by the first bytes of a file; 'a file' where nothing is known.
std::string looks_like(std::string_view head);
/// 'a folder of 2 files: a.txt, b'. Throws: IoError.
std::string folder_looks_like(const std::string& path);

/// Throws: FormatError that this is `what`, expected a model file.
[[noreturn]] void refuse_unknown(const std::string& path, std::string_view what);

}  // namespace openrnn::formats
