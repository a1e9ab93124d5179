// Quoting input of files and users in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace openrnn {

/// Truncated after some 80 characters; bytes that are not UTF-8, and control characters, which a
/// terminal would interpret, in octal.
std::string excerpt(std::string_view text);
/// Some of the names, each truncated, in one line.
std::string listed_excerpts(const std::vector<std::string>& names);

}  // namespace openrnn
