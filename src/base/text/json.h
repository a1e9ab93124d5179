// JSON without a library and without a tree in memory: values are taken one by one. For files that
// the core reads.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "openrnn/base.h"

namespace openrnn {

/// Takes the values of a text in its order. What the text has in place of what is asked for is a
/// FormatError that names the file and the place.
class JsonScanner {
 public:
  /// `path`, and `offset` of the text in it, are for messages; both are borrowed.
  JsonScanner(const std::string& path, std::uint64_t offset, std::string_view text)
      : path_(path), offset_(offset), text_(text) {}

  /// '{', '[', '"', 't', 'f', 'n', or '0' for a number.
  char kind();
  /// Calls `member` with each key, in order; it takes the value.
  template <class Member>
  void object(const Member& member) {
    take('{', "an object");
    for (bool first = true; !ends('}', first); first = false) {
      const std::string key = string();
      take(':', "a colon");
      member(key);
    }
  }
  /// Calls `item` for each value, which it takes.
  template <class Item>
  void array(const Item& item) {
    take('[', "an array");
    for (bool first = true; !ends(']', first); first = false) item();
  }
  /// UTF-8, whatever the text has.
  std::string string();
  bool boolean();
  void null();
  /// A whole number that is written as one, if it fits, else a double.
  std::variant<std::int64_t, double> number();
  /// A whole number from 0 on.
  std::uint64_t size();
  /// Nothing but white space is left.
  void end();

  /// At the place of the last value.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_space();
  void take(char c, const char* expected);
  /// After the first value there must be a comma before another one.
  bool ends(char close, bool first);
  void take_word(std::string_view word);
  std::string_view number_text();
  void take_escape(std::string& out);
  std::uint32_t hex4();

  const std::string& path_;
  std::uint64_t offset_;
  std::string_view text_;
  std::size_t at_ = 0, value_at_ = 0;
};

/// The text in quotes, with what JSON must escape.
std::string json_quoted(std::string_view text);
/// The shortest text that reads as this double; infinities and NaN, which JSON has not, in quotes.
std::string json_number(double value);

}  // namespace openrnn
