// Values of options as a flag has them, for messages.
#pragma once

#include <array>
#include <charconv>
#include <cmath>

#include "openrnn/spec_fields.h"

namespace openrnn::train {

inline std::string text_of(std::monostate) { return "none"; }
inline std::string text_of(bool value) { return value ? "true" : "false"; }
inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(std::int64_t value) { return std::to_string(value); }
// The shortest digits that are this number: the Python module links no library for that.
inline std::string text_of(double value) {
  const double size = std::fabs(value);
  const bool plain = value == 0.0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {text.data(), end.ptr};
}
inline std::string text_of(const std::array<double, 2>& value) {
  return text_of(value[0]) + "," + text_of(value[1]);
}
inline std::string text_of(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text.append(text.empty() ? "" : ",").append(value);
  return text;
}
template <class Name>
requires std::is_enum_v<Name> std::string text_of(Name value) {
  return std::string(to_string(value));
}
/// "lstm", "0.5", "-1,1", "none".
inline std::string text_of(const FieldValue& value) {
  return std::visit([](const auto& given) { return text_of(given); }, value);
}

}  // namespace openrnn::train
