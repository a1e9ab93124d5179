// Pickles as tests write them, opcode by opcode.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "formats/coding.h"

namespace openrnn::formats::pickle_text {

inline std::string text(std::string_view value) {
  std::string out = "X";
  put_fixed(&out, static_cast<std::uint32_t>(value.size()));
  return out.append(value);
}
inline std::string integer(std::int64_t value) {
  std::string out = "\x8a\x08";
  put_fixed(&out, value);
  return out;
}
inline std::string name(std::string_view module, std::string_view name) {
  return std::string("c").append(module).append("\n").append(name).append("\n");
}
inline std::string joined(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}
inline std::string tuple(std::initializer_list<std::string> items) {
  return "(" + joined(items) + "t";
}
inline std::string list(std::initializer_list<std::string> items) {
  return "](" + joined(items) + "e";
}
/// Keys and values alternate.
inline std::string dict(std::initializer_list<std::string> items) {
  return "}(" + joined(items) + "u";
}
inline std::string call(const std::string& name, std::initializer_list<std::string> arguments) {
  return name + tuple(arguments) + "R";
}
inline std::string persistent(const std::string& description) { return description + "Q"; }
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace openrnn::formats::pickle_text
