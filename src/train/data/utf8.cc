#include "train/data/utf8.h"

namespace openrnn::train {

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

std::string utf8_of(std::int32_t code) {
  const auto last = [](std::int32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), last(code)};
  if (code < 0x10000) {
    return {static_cast<char>(0xe0 | code >> 12), last(code >> 6), last(code)};
  }
  return {static_cast<char>(0xf0 | code >> 18), last(code >> 12), last(code >> 6), last(code)};
}

}  // namespace openrnn::train
