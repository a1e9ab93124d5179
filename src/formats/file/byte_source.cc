#include "formats/file/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/message.h"
#include "formats/file/atomic_file.h"
#include "openrnn/base.h"

namespace openrnn::formats {

std::string ByteSource::read_string(std::uint64_t offset, std::uint64_t count) const {
  check_range(offset, count);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  read_at(offset, bytes.data(), bytes.size());
  return bytes;
}

void ByteSource::check_range(std::uint64_t offset, std::uint64_t count) const {
  if (offset > size() || count > size() - offset) {
    throw FormatError(
        path(), offset,
        message("the file ends at byte ", size(), ", expected ", count, " more bytes from here"));
  }
}

void MemorySource::read_at(std::uint64_t offset, void* out, std::size_t count) const {
  check_range(offset, count);
  if (count) std::memcpy(out, bytes_.data() + offset, count);
}

FileSource::FileSource(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw_io_error("open", path, errno);
  struct stat status = {};
  const int error = ::fstat(fd_, &status) ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (error) {
    ::close(fd_);
    throw_io_error("open", path, error);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

FileSource::~FileSource() { ::close(fd_); }

void FileSource::read_at(std::uint64_t offset, void* out, std::size_t count) const {
  check_range(offset, count);
  auto* at = static_cast<char*>(out);
  while (count) {
    // Linux reads at most 2^31 - 4096 bytes a call.
    const std::size_t piece = std::min<std::size_t>(count, std::size_t{1} << 30);
    const ::ssize_t got = ::pread(fd_, at, piece, static_cast<::off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io_error("read", path_, errno);
    if (got == 0) throw FormatError(path_, offset, "the file was cut while it was read");
    at += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

}  // namespace openrnn::formats
