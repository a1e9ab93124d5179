#include "base/text/json.h"

#include <array>
#include <cmath>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"

namespace openrnn {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// JSON's own grammar: no sign in front but a minus, no leading zero, digits around the point.
bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > first;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const std::size_t whole = at;
  if (!digits() || (text[whole] == '0' && at > whole + 1)) return false;
  if (at < text.size() && text[at] == '.' && (++at, !digits())) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return false;
  }
  return at == text.size();
}

}  // namespace

void JsonScanner::fail(const std::string& what) const {
  throw FormatError(path_, offset_ + value_at_, what);
}

void JsonScanner::skip_space() {
  constexpr std::string_view kSpace = " \t\r\n";
  while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos) ++at_;
  value_at_ = at_;
}

void JsonScanner::take(char c, const char* expected) {
  skip_space();
  if (at_ == text_.size()) fail(message("the JSON ends, expected ", expected));
  if (text_[at_] != c) {
    fail(message("the JSON has '", excerpt(text_.substr(at_, 16)), "', expected ", expected));
  }
  ++at_;
}

bool JsonScanner::ends(char close, bool first) {
  skip_space();
  if (at_ < text_.size() && text_[at_] == close) {
    ++at_;
    return true;
  }
  if (!first) take(',', close == '}' ? "a comma or }" : "a comma or ]");
  return false;
}

char JsonScanner::kind() {
  skip_space();
  if (at_ == text_.size()) fail("the JSON ends, expected a value");
  const char c = text_[at_];
  return is_digit(c) || c == '-' ? '0' : c;
}

void JsonScanner::take_word(std::string_view word) {
  skip_space();
  if (!text_.substr(at_).starts_with(word)) {
    fail(message("the JSON has '", excerpt(text_.substr(at_, 16)), "', expected ", word));
  }
  at_ += word.size();
}

bool JsonScanner::boolean() {
  const bool value = kind() == 't';
  take_word(value ? "true" : "false");
  return value;
}

void JsonScanner::null() { take_word("null"); }

std::string_view JsonScanner::number_text() {
  skip_space();
  constexpr std::string_view kCharacters = "+-.eE0123456789";
  std::size_t end = at_;
  while (end < text_.size() && kCharacters.find(text_[end]) != std::string_view::npos) ++end;
  const std::string_view text = text_.substr(at_, end - at_);
  if (!is_json_number(text)) {
    fail(message("the JSON has '", excerpt(text_.substr(at_, 16)), "', expected a number"));
  }
  at_ = end;
  return text;
}

std::variant<std::int64_t, double> JsonScanner::number() {
  const std::string_view text = number_text();
  const char* const end = text.data() + text.size();
  if (text.find_first_of(".eE") == std::string_view::npos) {
    std::int64_t whole = 0;
    if (std::from_chars(text.data(), end, whole).ec == std::errc()) return whole;
  }
  double value = 0;
  if (std::from_chars(text.data(), end, value).ec == std::errc()) return value;
  fail(message("the number ", excerpt(text), " has no double, expected one that has"));
}

std::uint64_t JsonScanner::size() {
  const std::string_view text = number_text();
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return value;
  fail(message("the JSON has ", excerpt(text), ", expected a whole number from 0 to 2^64 - 1"));
}

void JsonScanner::end() {
  skip_space();
  if (at_ == text_.size()) return;
  fail(message("the JSON goes on with '", excerpt(text_.substr(at_, 16)), "', expected its end"));
}

std::uint32_t JsonScanner::hex4() {
  constexpr std::size_t kDigits = 4;
  std::uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, kDigits);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() < kDigits || error != std::errc() || stop != digits.data() + kDigits) {
    fail("a string has \\u without four hexadecimal digits");
  }
  at_ += kDigits;
  return value;
}

void JsonScanner::take_escape(std::string& out) {
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  const std::size_t plain = c == '\0' ? std::string_view::npos : kFrom.find(c);
  if (plain != std::string_view::npos) {
    out += kTo[plain];
    return;
  }
  if (c != 'u') fail("a string has an escape that JSON has not");
  std::uint32_t code = hex4();
  const bool high = code >= 0xd800 && code < 0xdc00;
  if (high && text_.substr(at_).starts_with("\\u")) {
    at_ += 2;
    const std::uint32_t low = hex4();
    if (low < 0xdc00 || low >= 0xe000) fail("a string has half of a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    fail("a string has half of a surrogate pair");
  }
  out += utf8_of(static_cast<std::int32_t>(code));
}

std::string JsonScanner::string() {
  take('"', "a string");
  std::string out;
  for (;;) {
    if (at_ == text_.size()) fail("a string does not end");
    const char c = text_[at_++];
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < 0x20) fail("a string has a control character");
    if (c == '\\') {
      take_escape(out);
    } else {
      out += c;
    }
  }
  if (!is_valid_utf8(out)) fail("a string is not UTF-8");
  return out;
}

std::string json_quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string json_number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value < 0 ? "\"-inf\"" : "\"inf\"";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  std::string out(text.data(), end);
  // 1 would be a whole number.
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace openrnn
