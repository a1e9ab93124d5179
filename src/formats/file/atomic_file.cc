#include "formats/file/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/message.h"
#include "openrnn/formats.h"

namespace openrnn {
namespace formats {

namespace {
// Large enough that a call costs little beside the copy.
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
}  // namespace

void throw_io_error(std::string_view call, const std::string& path, int error) {
  throw IoError(message("[", call, "] ", path, ": ", std::generic_category().message(error)));
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_io_error("create", path, errno);
}

void OutputFile::write(const void* data, std::size_t size) {
  if (fd_ < 0) throw StateError("[write] " + path_ + " is closed, expected an open file");
  if (buffer_.size() + size <= kBufferBytes) {
    buffer_.append(static_cast<const char*>(data), size);
    return;
  }
  flush();
  write_through(static_cast<const char*>(data), size);
}

void OutputFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::write_through(const char* data, std::size_t size) {
  while (size) {
    const std::size_t piece = std::min<std::size_t>(size, std::size_t{1} << 30);
    const ::ssize_t done = ::write(fd_, data, piece);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write");
    data += done;
    size -= static_cast<std::size_t>(done);
  }
}

void OutputFile::sync_and_close() {
  flush();
  // EINVAL: something that cannot be synced, such as a pipe.
  if (::fsync(fd_) && errno != EINVAL) fail("sync");
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed) fail("close");
}

void OutputFile::fail(std::string_view call) {
  const int error = errno;
  discard();
  throw_io_error(call, path_, error);
}

void OutputFile::discard() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (keep_) return;
  keep_ = true;  // what a later writer puts at this path is not ours to remove
  struct stat status = {};
  // Never a device: a full disk is often played by one.
  if (::lstat(path_.c_str(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)))
    ::unlink(path_.c_str());
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str())) throw_io_error("rename", to, errno);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) && errno != ENOENT) throw_io_error("remove", path, errno);
}

bool file_exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw_io_error("open", folder, errno);
  const int error = ::fsync(fd) ? errno : 0;
  ::close(fd);
  // Some file systems cannot sync a folder and say so by EINVAL.
  if (error && error != EINVAL) throw_io_error("sync", folder, error);
}

}  // namespace formats

void write_file_atomically(const std::string& path, std::string_view bytes) {
  formats::OutputFile file(path + std::string(formats::kUnfinishedSuffix));
  file.write(bytes);
  file.sync_and_close();
  formats::rename_file(file.path(), path);
  file.keep();
  formats::sync_folder_of(path);
}

std::string read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) formats::throw_io_error("open", path, errno);
  std::string bytes;
  struct stat status = {};
  // The size is a hint alone: that of a pipe is 0.
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  std::string piece(std::size_t{1} << 16, '\0');
  for (;;) {
    const ::ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got > 0) bytes.append(piece.data(), static_cast<std::size_t>(got));
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    const int error = got < 0 ? errno : 0;
    ::close(fd);
    if (error) formats::throw_io_error("read", path, error);
    return bytes;
  }
}

}  // namespace openrnn
