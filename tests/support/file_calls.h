// Sees every call of this program that changes files, can let one fail, and can end the process
// there. Include it in one source of a program: it defines the calls.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <string>

namespace openrnn::testing {

/// Called before "create", "write", "sync", "rename" and "remove", with the file's name without
/// its folder (of a rename the new one); returns the errno to fail with, or 0.
using FileHook = std::function<int(const std::string& call, const std::string& name)>;
inline thread_local FileHook file_hook;
/// Syncs of this thread do nothing: what the disk holds is not the test's affair.
inline thread_local bool skip_syncs = false;

/// The calls of this thread go to `hook` while this lives.
struct WatchFiles {
  explicit WatchFiles(FileHook hook) { file_hook = std::move(hook); }
  ~WatchFiles() { file_hook = nullptr; }
  WatchFiles(const WatchFiles&) = delete;
  WatchFiles& operator=(const WatchFiles&) = delete;
};

/// Whether the call may go on; what the hook itself does to files is not seen.
inline bool allowed(const char* call, const char* path) {
  if (!file_hook) return true;
  FileHook hook;
  hook.swap(file_hook);
  const int error = hook(call, std::filesystem::path(path).filename().string());
  hook.swap(file_hook);
  errno = error;
  return error == 0;
}

inline bool allowed(const char* call, int fd) {
  if (!file_hook) return true;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
  return allowed(call, path.c_str());
}

}  // namespace openrnn::testing

// NOLINTBEGIN: the names and types of the C library
extern "C" {
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  if ((flags & O_CREAT) && !openrnn::testing::allowed("create", path)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
ssize_t write(int fd, const void* data, size_t size) {
  if (!openrnn::testing::allowed("write", fd)) return -1;
  return syscall(SYS_write, fd, data, size);
}
int fsync(int fd) {
  if (!openrnn::testing::allowed("sync", fd)) return -1;
  return openrnn::testing::skip_syncs ? 0 : static_cast<int>(syscall(SYS_fsync, fd));
}
int rename(const char* from, const char* to) noexcept {
  if (!openrnn::testing::allowed("rename", to)) return -1;
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int unlink(const char* path) noexcept {
  if (!openrnn::testing::allowed("remove", path)) return -1;
  return static_cast<int>(syscall(SYS_unlink, path));
}
}
// NOLINTEND
