#include "runtime/model_file/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/message.h"

namespace openrnn::runtime {

namespace {

constexpr std::size_t kAlignment = 8;

[[noreturn]] void throw_cannot_read(const std::string& path, int error) {
  throw IoError(message("[NetworkFile] ", path, ": ", std::generic_category().message(error)));
}

/// Closed by the destructor: a mapping stays without it.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw_cannot_read(path, errno);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

FileBytes::FileBytes(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw ArgumentError("[NetworkFile] the path holds a zero byte, expected none");
  }
  const OpenFile file(path);
  struct ::stat about {};
  if (::fstat(file.get(), &about) != 0) throw_cannot_read(path, errno);
  if (!S_ISREG(about.st_mode)) {
    throw IoError(message("[NetworkFile] ", path, ": no regular file"));
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0) return;  // which mmap refuses
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) throw_cannot_read(path, errno);
  mapped_ = data;
  bytes_ = {static_cast<const std::byte*>(data), size};
}

FileBytes::FileBytes(std::span<const std::byte> bytes) : bytes_(bytes) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0) return;
  copy_ = AlignedBuffer(bytes.size());
  std::memcpy(copy_.data(), bytes.data(), bytes.size());
  bytes_ = {static_cast<const std::byte*>(copy_.data()), bytes.size()};
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(mapped_, bytes_.size());
}

}  // namespace openrnn::runtime
