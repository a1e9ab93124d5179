// What files and users say, in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace openrnn {

/// Cut after some 80 characters; in octal what is not UTF-8 or is a control character, which a
/// terminal would obey.
std::string excerpt(std::string_view text);
/// Some of the names, each cut, in one line.
std::string listed_excerpts(const std::vector<std::string>& names);

}  // namespace openrnn
