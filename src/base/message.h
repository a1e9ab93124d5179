// Builds error messages.
#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <vector>

namespace openrnn {

/// The parts one after another, as `<<` prints them in the classic locale, whatever the program's
/// is.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

/// Names in one line of an error; long lists are truncated.
inline std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMost) text += message(" and ", names.size() - kMost, " more");
  return text;
}

}  // namespace openrnn
