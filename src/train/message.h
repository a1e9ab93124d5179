// Error messages of this room: "[call] what was given, what was expected".
#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <string_view>

namespace openrnn::train {

/// "[call] " and the parts, joined, in the classic locale, whatever the program's is.
template <class... Parts>
std::string message(std::string_view call, const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << '[' << call << "] ";
  (out << ... << parts);
  return out.str();
}

}  // namespace openrnn::train
