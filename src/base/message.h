// Builds error messages.
#pragma once

#include <sstream>
#include <string>

namespace openrnn {

/// The parts one after another, as `<<` would print them.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace openrnn
