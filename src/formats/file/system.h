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

/// Calls again as long as signals interrupt.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file; closed with its owner.
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

/// Which file a name stands for: two names or moments with one identity have one content.
struct FileIdentity {
  ::dev_t device = 0;
  ::ino_t node = 0;
  bool there = false;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Links are followed; not there: no identity. Throws: ArgumentError for a zero byte.
FileIdentity identity_of(const std::string& path);
FileIdentity identity_of(const Descriptor& file);

/// Opens a regular file for reading. Throws: IoError for anything else, at once: a FIFO would keep
/// its reader waiting, and opening a device may do something.
Descriptor open_regular(const std::string& path);
/// As open_regular, but takes a pipe without a name too, as a shell's <(command).
Descriptor open_readable(const std::string& path);

/// Whether the file was locked now, or cannot be locked where it lies; false: another one holds it.
/// A lock ends with the descriptor, so also with a process that dies.
bool try_lock(const Descriptor& file) noexcept;
/// At once, where closing would leave the lock to a child that was forked meanwhile.
void unlock(const Descriptor& file) noexcept;

/// A new file for writing at a path where nothing is, nor a link: locked, and no leftover of a
/// writer that died, which is removed. Throws: IoError; StateError if another writer is at it.
Descriptor create_new(const std::string& path);
/// The lock of what lies at the path, not open if nothing does. Throws: StateError if a writer
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
/// What lies in a folder, in any order; nothing where there is no folder. (libstdc++'s iterator
/// ends the process when memory ends.) Throws: IoError.
std::vector<std::string> names_in(const std::string& folder);
/// The folder of `path`, "." for a bare name.
std::string folder_of(const std::string& path);

/// Makes renames in a folder last.
class FolderSync {
 public:
  /// The folder of `path`. Throws: IoError.
  explicit FolderSync(const std::string& path);
  /// Takes no memory. Throws: IoError.
  void sync() const;

 private:
  std::string folder_;
  Descriptor fd_;
};

}  // namespace openrnn::formats
