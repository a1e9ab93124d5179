#include "formats/file/byte_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/message.h"
#include "openrnn/base.h"

namespace openrnn::formats {

std::string ByteSource::read_string(std::uint64_t offset, std::uint64_t count) const {
  check_range(offset, count);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  read_at(offset, bytes.data(), bytes.size());
  return bytes;
}

void ByteSource::visit(std::uint64_t offset, std::uint64_t count, std::uint64_t at_once,
                       const std::function<void(std::string_view bytes)>& visit) const {
  check_range(offset, count);
  std::string bytes(static_cast<std::size_t>(std::min(at_once, count)), '\0');
  for (std::uint64_t at = 0; at < count; at += bytes.size()) {
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), count - at)));
    read_at(offset + at, bytes.data(), bytes.size());
    visit(bytes);
  }
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

FileSource::FileSource(const std::string& path) : path_(path), file_(open_regular(path)) {
  struct stat status = {};
  if (::fstat(file_.get(), &status)) throw_io_error("open", path, errno);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void FileSource::read_at(std::uint64_t offset, void* out, std::size_t count) const {
  check_range(offset, count);
  auto* at = static_cast<char*>(out);
  while (count) {
    // Linux reads at most 2^31 - 4096 bytes a call.
    const std::size_t piece = std::min<std::size_t>(count, std::size_t{1} << 30);
    const ::ssize_t got = uninterrupted(
        [&] { return ::pread(file_.get(), at, piece, static_cast<::off_t>(offset)); });
    if (got < 0) throw_io_error("read", path_, errno);
    if (got == 0) throw FormatError(path_, offset, "the file was cut while it was read");
    at += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string_view FileSource::mapped() const {
  const std::lock_guard lock(mapping_mutex_);
  if (size_ && mapping_.bytes().empty()) mapping_ = FileMapping(file_, size_, path_);
  return mapping_.bytes();
}

}  // namespace openrnn::formats
