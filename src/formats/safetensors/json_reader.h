// What both readers of JSON share: errors, and values that are expected one by one, without a tree
// of values in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "openrnn/base.h"

namespace openrnn::formats {

/// Refuses every value: a reader overrides what it expects.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonReader(const std::string& path, std::uint64_t offset) : path_(path), offset_(offset) {}

  /// Throws: FormatError.
  void read(std::string_view json) { nlohmann::json::sax_parse(json.begin(), json.end(), this); }

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { refuse(message(value)); }
  bool number_unsigned(number_unsigned_t value) override { refuse(message(value)); }
  bool number_float(number_float_t, const string_t& text) override { refuse(excerpt(text)); }
  bool string(string_t& value) override { refuse("'" + excerpt(value) + "'"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool start_object(std::size_t) override { refuse("an object"); }
  bool key(string_t& name) override { refuse("'" + excerpt(name) + "'"); }
  bool end_object() override { refuse("the end of an object"); }
  bool start_array(std::size_t) override { refuse("an array"); }
  bool end_array() override { refuse("the end of an array"); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw FormatError(path_, offset_ + (at ? at - 1 : 0), "this is no JSON, expected " + what_);
  }

 protected:
  [[noreturn]] void fail(const std::string& what) const { throw FormatError(path_, offset_, what); }
  /// What stands in place of `expected_`.
  [[noreturn]] void refuse(const std::string& found) const {
    fail(what_ + " has " + found + ", expected " + expected_);
  }
  /// A name that a file can have, once.
  void take_name(const std::string& kind, const std::string& name,
                 std::unordered_set<std::string>* taken) const {
    if (!is_printable_utf8(name)) {
      fail(message(kind, " '", excerpt(name), "' holds a control character, expected none"));
    }
    if (!taken->insert(name).second) {
      fail(message(kind, " '", excerpt(name), "' is there twice, expected once"));
    }
  }

  /// For messages: what is being read, and what may come next.
  std::string what_, expected_;

 private:
  const std::string& path_;
  std::uint64_t offset_;
};

}  // namespace openrnn::formats
