// Parsing of decimal numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace openrnn::train {

/// The decimal number that all of `text` spells, with one sign or none; nothing for any other text
/// and for what T does not hold. A floating T holds "nan" and "inf".
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace openrnn::train
