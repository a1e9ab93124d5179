// The text form of protocol buffers, as far as flat messages of strings and numbers need it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace openrnn::formats {

struct TextField {
  std::string name;
  /// A string without its quotes and escapes, or a number as written.
  std::string value;
  bool quoted = false;
  std::size_t offset = 0;
};

/// Throws: FormatError with `path` and the offset in `text`.
std::vector<TextField> parse_text_proto(const std::string& path, std::string_view text);

/// With quotes; all but printable ASCII escaped, as TensorFlow writes it.
std::string quote_text(std::string_view value);

}  // namespace openrnn::formats
