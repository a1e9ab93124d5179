// Files that are written beside their place and renamed into it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace openrnn::formats {

/// Ends the names of files that are not yet in their place.
inline constexpr std::string_view kUnfinishedSuffix = ".new";

/// Throws IoError "[call] path: reason of errno".
[[noreturn]] void throw_io_error(std::string_view call, const std::string& path, int error);

/// A file being written. Unless keep() was called it is removed again: by the destructor, and at
/// once when writing fails.
class OutputFile {
 public:
  /// Creates or empties. Throws: IoError.
  explicit OutputFile(const std::string& path);
  ~OutputFile() { discard(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Buffered. Throws: IoError.
  void write(const void* data, std::size_t size);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  /// Hands the buffer to the operating system. Throws: IoError.
  void flush();
  /// To the disk itself, then closes. Throws: IoError.
  void sync_and_close();
  /// The file stays whatever comes.
  void keep() noexcept { keep_ = true; }

 private:
  void write_through(const char* data, std::size_t size);
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view call);

  std::string path_;
  std::string buffer_;
  int fd_ = -1;
  bool keep_ = false;
};

/// Throws: IoError.
void rename_file(const std::string& from, const std::string& to);
/// No error if there is none. Throws: IoError.
void remove_file(const std::string& path);
bool file_exists(const std::string& path);
/// Makes renames in the folder of `path` last. Throws: IoError.
void sync_folder_of(const std::string& path);
/// The folder of `path`, "." for a bare name.
std::string folder_of(const std::string& path);

}  // namespace openrnn::formats
