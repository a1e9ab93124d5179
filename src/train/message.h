// Error messages of this room: "[call] what was given, what was expected".
#pragma once

#include <cmath>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace openrnn::train {

/// "[call] " and the parts, joined, in the classic locale, whatever the program's is. The sign of a
/// NaN depends on the processor and is left out.
template <class... Parts>
std::string message(std::string_view call, const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << '[' << call << "] ";
  const auto add = [&out](const auto& part) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(part)>>) {
      out << (std::isnan(part) ? std::abs(part) : part);
    } else {
      out << part;
    }
  };
  (add(parts), ...);
  return out.str();
}

}  // namespace openrnn::train
