// Files that are written under a temporary name and renamed.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "formats/file/system.h"

namespace openrnn::formats {

/// Suffix of files that are not yet renamed.
inline constexpr std::string_view kUnfinishedSuffix = ".new";

/// A file being written, and locked meanwhile. Unless keep() was called it is removed: by the
/// destructor, and at once when writing fails.
class OutputFile {
 public:
  /// As create_new. Throws: IoError; StateError if another writer has it.
  explicit OutputFile(const std::string& path) : path_(path), file_(create_new(path)) {}
  ~OutputFile() { discard(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Buffered. Throws: IoError.
  void write(const void* data, std::size_t size);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  /// Writes the buffer to the operating system. Throws: IoError.
  void flush();
  /// Syncs to disk. Throws: IoError.
  void sync();
  /// The file is not removed any more.
  void keep() noexcept { keep_ = true; }

 private:
  void write_through(const char* data, std::size_t size);
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view call);

  std::string path_;
  std::string buffer_;
  Descriptor file_;
  bool keep_ = false;
};

/// As write_file_atomically, of what `write` writes.
void replace_file(const std::string& path, const std::function<void(OutputFile&)>& write);

/// The rest of the file. Throws: IoError.
std::string read_all(const Descriptor& file, const std::string& path);

}  // namespace openrnn::formats
