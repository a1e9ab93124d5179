// UTF-8, strictly: no overlong form, no surrogate, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace openrnn {

/// The code point at `at`, which moves past it; -1 (and `at` stays) if the bytes are not UTF-8.
std::int32_t next_code_point(std::string_view text, std::size_t& at);
bool is_valid_utf8(std::string_view text);
/// Whether the text is UTF-8 without control characters (C0, DEL and C1).
bool is_printable_utf8(std::string_view text);
std::string utf8_of(std::int32_t code_point);

}  // namespace openrnn
