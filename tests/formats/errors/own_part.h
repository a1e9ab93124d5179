// What is said of a file, without what a library says in it.
#pragma once

#include <algorithm>
#include <string>

namespace openrnn::formats {

/// Up to where the words of a library begin, which change with its version.
inline std::string own_part(const std::string& text) {
  const std::size_t ends[] = {text.find(" [json.exception"), text.find(" is broken: "),
                              text.find(" is malformed: ")};
  return text.substr(0, *std::ranges::min_element(ends));
}

}  // namespace openrnn::formats
