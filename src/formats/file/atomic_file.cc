#include "formats/file/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "openrnn/formats.h"

namespace openrnn {
namespace formats {

namespace {
// Large enough that a system call costs little compared with the copy.
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
}  // namespace

void OutputFile::write(const void* data, std::size_t size) {
  if (!file_.is_open()) throw StateError("[write] " + path_ + " is closed, expected an open file");
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
    const ::ssize_t done = uninterrupted([&] { return ::write(file_.get(), data, piece); });
    if (done < 0) fail("write");
    data += done;
    size -= static_cast<std::size_t>(done);
  }
}

void OutputFile::sync() {
  flush();
  if (uninterrupted([&] { return ::fsync(file_.get()); })) fail("sync");
}

void OutputFile::fail(std::string_view call) {
  const int error = errno;
  discard();
  throw_io_error(call, path_, error);
}

void OutputFile::discard() noexcept {
  if (!file_.is_open()) return;
  struct stat status = {}, own = {};
  // Only if it is still the file of that name: after the rename that may be a later writer's.
  if (!keep_ && ::fstat(file_.get(), &own) == 0 && ::lstat(path_.c_str(), &status) == 0 &&
      status.st_dev == own.st_dev && status.st_ino == own.st_ino) {
    ::unlink(path_.c_str());
  }
  unlock(file_);
  file_.close();
}

void replace_file(const std::string& path, const std::function<void(OutputFile&)>& write) {
  OutputFile file(path + std::string(kUnfinishedSuffix));
  const FolderSync folder(path);
  write(file);
  file.sync();
  rename_file(file.path(), path);
  folder.sync();
}

}  // namespace formats

void write_file_atomically(const std::string& path, std::string_view bytes) {
  formats::replace_file(path, [&](formats::OutputFile& file) { file.write(bytes); });
}

std::string formats::read_all(const Descriptor& file, const std::string& path) {
  std::string bytes;
  struct stat status = {};
  // The size is only a hint: that of a pipe is 0.
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    bytes.reserve(static_cast<std::size_t>(status.st_size) + 1);
  }
  std::string piece(std::size_t{1} << 16, '\0');
  for (;;) {
    const ::ssize_t got =
        uninterrupted([&] { return ::read(file.get(), piece.data(), piece.size()); });
    if (got < 0) throw_io_error("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::string& path) {
  return formats::read_all(formats::open_readable(path), path);
}

}  // namespace openrnn
