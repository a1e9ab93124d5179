#include "formats/text_proto.h"

#include <cstdint>

#include "base/excerpt.h"
#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '+' || c == '-';
}
int digit_of(char c, int base) {
  int value = 99;
  if (c >= '0' && c <= '9') value = c - '0';
  if (c >= 'a' && c <= 'f') value = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') value = c - 'A' + 10;
  return value < base ? value : -1;
}

class Parser {
 public:
  Parser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  std::vector<TextField> parse() {
    std::vector<TextField> fields;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      const std::string name = word("a field's name");
      skip_space();
      if (!take(':')) fail("expected ':' after '" + excerpt(name) + "'");
      skip_space();
      if (take('[')) {
        list(name, &fields);
      } else {
        fields.push_back(value(name));
      }
      skip_space();
      if (!take(',')) take(';');  // either may end a field
    }
    return fields;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FormatError(path_, at_, what); }
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void list(const std::string& name, std::vector<TextField>* fields) {
    skip_space();
    while (!take(']')) {
      fields->push_back(value(name));
      skip_space();
      if (take(',')) {
        skip_space();
      } else if (!more() || text_[at_] != ']') {
        fail("expected ',' or ']' in a list");
      }
    }
  }

  void skip_space() {
    while (more() && (is_space(text_[at_]) || text_[at_] == '#')) {
      if (text_[at_] == '#') {
        while (more() && text_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
  }

  std::string word(const char* expected) {
    const std::size_t start = at_;
    while (more() && is_word(text_[at_])) ++at_;
    if (at_ == start) fail(message("expected ", expected));
    return std::string(text_.substr(start, at_ - start));
  }

  TextField value(const std::string& name) {
    TextField field{name, {}, false, at_};
    if (!more() || (text_[at_] != '"' && text_[at_] != '\'')) {
      field.value = word("a quoted string or a number");
      return field;
    }
    field.quoted = true;
    // Strings side by side are one string.
    while (more() && (text_[at_] == '"' || text_[at_] == '\'')) {
      quoted(&field.value);
      skip_space();
    }
    return field;
  }

  void quoted(std::string* out) {
    const char quote = text_[at_++];
    while (!take(quote)) {
      if (!more() || text_[at_] == '\n') fail("a string does not end in its line");
      const char c = text_[at_++];
      if (c == '\\') {
        escape(out);
      } else {
        *out += c;
      }
    }
  }

  void escape(std::string* out) {
    if (!more()) fail("a string ends in an escape");
    const char c = text_[at_++];
    constexpr std::string_view kNames = "abfnrtv\\\"'?", kValues = "\a\b\f\n\r\t\v\\\"'?";
    if (const std::size_t i = kNames.find(c); i != std::string_view::npos) {
      *out += kValues[i];
    } else if (c == 'x' || c == 'X') {
      *out += static_cast<char>(number(16, 2));
    } else if (digit_of(c, 8) >= 0) {
      --at_;
      *out += static_cast<char>(number(8, 3));
    } else {
      fail(message("an escape that is not known: \\", excerpt({&c, 1})));
    }
  }

  int number(int base, int max_digits) {
    int result = 0, digits = 0;
    for (; digits < max_digits && more() && digit_of(text_[at_], base) >= 0; ++digits) {
      result = result * base + digit_of(text_[at_++], base);
    }
    if (digits == 0) fail("expected digits in an escape");
    return result;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<TextField> parse_text_proto(const std::string& path, std::string_view text) {
  return Parser(path, text).parse();
}

namespace {

void append_octal(std::string* text, unsigned char byte) {
  *text += '\\';
  for (const int shift : {6, 3, 0}) *text += static_cast<char>('0' + ((byte >> shift) & 7));
}

}  // namespace

std::string quote_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '"' || c == '\'' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      append_octal(&text, byte);
    } else {
      text += c;
    }
  }
  return text + "\"";
}

}  // namespace openrnn::formats
