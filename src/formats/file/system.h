// Calls of the operating system on files, with its errors as exceptions.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace openrnn::formats {

/// Throws IoError "[call] path: reason of errno".
[[noreturn]] void throw_io_error(std::string_view call, const std::string& path, int error);
/// For a system call, which would read a path up to its first zero byte.
/// Throws: ArgumentError if there is one.
const char* c_path(std::string_view call, const std::string& path);

/// Repeats a call while signals interrupt it.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file, closed by its destructor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }
  void close() noexcept;

 private:
  int release() noexcept;
  int fd_ = -1;
};

/// Identity of the file of a name: names with equal identities have the same content.
struct FileIdentity {
  ::dev_t device = 0;
  ::ino_t node = 0;
  bool there = false;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Links are followed; a missing file has none. Throws: ArgumentError for a zero byte.
FileIdentity identity_of(const std::string& path);
FileIdentity identity_of(const Descriptor& file);

/// Opens a regular file for reading. Throws: IoError for anything else, without opening it: a FIFO
/// would block, and opening a device may have side effects.
Descriptor open_regular(const std::string& path);
/// As open_regular, but also takes an anonymous pipe, such as a shell's <(command).
Descriptor open_readable(const std::string& path);

/// True if the file was locked, or its file system has no locks; false: another process holds it. A
/// lock ends with the descriptor, and so with a process that dies.
bool try_lock(const Descriptor& file) noexcept;
/// Explicitly, as closing would leave the lock to a child that was forked meanwhile.
void unlock(const Descriptor& file) noexcept;

/// A new, locked file for writing; never follows a link. A leftover of a dead writer is removed
/// first. Throws: IoError; StateError if another writer has it.
Descriptor create_new(const std::string& path);
/// The lock of the file at the path, not open if there is none. Throws: StateError if a writer
/// holds it.
Descriptor lock_existing(const std::string& path);

/// Throws: IoError.
void rename_file(const std::string& from, const std::string& to);
/// No error if there is none. Throws: IoError.
void remove_file(const std::string& path);
/// Anything but a folder.
bool file_exists(const std::string& path);
/// A regular file and no link to one.
bool is_own_file(const std::string& path);
/// The names in a folder, in any order; none if there is no folder. (libstdc++'s iterator ends the
/// process when memory runs out.) Throws: IoError.
std::vector<std::string> names_in(const std::string& folder);
/// The folder of `path`, "." for a bare name.
std::string folder_of(const std::string& path);

/// Makes renames in a folder durable.
class FolderSync {
 public:
  /// The folder of `path`. Throws: IoError.
  explicit FolderSync(const std::string& path);
  /// Allocates nothing. Throws: IoError.
  void sync() const;

 private:
  std::string folder_;
  Descriptor fd_;
};

}  // namespace openrnn::formats
