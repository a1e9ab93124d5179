#include "base/utf8.h"

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn {

std::int32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4 || text.size() - at <= static_cast<std::size_t>(more)) return -1;
  std::int32_t code = first & (0x3f >> more);
  for (int i = 1; i <= more; ++i) {
    const unsigned char next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) return -1;
    code = code << 6 | (next & 0x3f);
  }
  const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (overlong || surrogate || code > 0x10ffff) return -1;
  at += static_cast<std::size_t>(more) + 1;
  return code;
}

namespace {

bool is_control(std::int32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (next_code_point(text, at) < 0) return false;
  }
  return true;
}

bool is_printable_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_control(next_code_point(text, at))) return false;  // so is -1
  }
  return true;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (out.size() >= kMost) return out + message("... (", text.size(), " bytes)");
    const std::size_t start = at;
    if (!is_control(next_code_point(text, at))) {
      out += text.substr(start, at - start);
      continue;
    }
    at = start + 1;
    const auto byte = static_cast<unsigned char>(text[start]);
    out += '\\';
    for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + ((byte >> shift) & 7));
  }
  return out;
}

std::string listed_excerpts(const std::vector<std::string>& names) {
  std::vector<std::string> cut;
  for (const std::string& name : names) cut.push_back(excerpt(name));
  return listed(cut);
}

std::string utf8_of(std::int32_t code) {
  const auto last = [](std::int32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), last(code)};
  if (code < 0x10000) {
    return {static_cast<char>(0xe0 | code >> 12), last(code >> 6), last(code)};
  }
  return {static_cast<char>(0xf0 | code >> 18), last(code >> 12), last(code >> 6), last(code)};
}

}  // namespace openrnn
