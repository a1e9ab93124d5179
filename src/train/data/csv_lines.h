// Lines of a CSV file and their cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/file/byte_source.h"

namespace openrnn::train {

/// The lines of a part of a file that are not blank, of which only some are in memory.
class CsvLines {
 public:
  /// Of the bytes [begin, end); reads `at_once` of them at a time, more where a line is longer.
  CsvLines(const formats::ByteSource& file, std::uint64_t begin, std::uint64_t end,
           std::size_t at_once)
      : file_(file), base_(begin), read_(begin), end_(end), at_once_(at_once) {}
  /// Of the whole file, behind its byte order mark.
  explicit CsvLines(const formats::ByteSource& file);

  /// Goes to the next one; false: there is none. Throws: as ByteSource::read_at.
  bool next();
  /// Until the next call.
  std::string_view line() const { return line_; }
  /// Of the file, where it begins.
  std::uint64_t offset() const { return offset_; }
  /// From 1, blank ones among them.
  std::int64_t number() const { return number_; }

 private:
  void fill();

  const formats::ByteSource& file_;
  std::string buffer_;  // from base_ on
  std::uint64_t base_, read_, end_, offset_ = 0;
  std::size_t at_ = 0, at_once_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

/// The cells of a line, without blanks around them and without quotes.
class CsvCells {
 public:
  /// As long as `line`, or until the next call. Inside quotes the delimiter is an ordinary
  /// character.
  const std::vector<std::string_view>& split(std::string_view line, char delimiter);

 private:
  void unquote(std::string_view line, char delimiter);

  std::vector<std::string_view> cells_;
  std::vector<std::string> unquoted_;
};

}  // namespace openrnn::train
