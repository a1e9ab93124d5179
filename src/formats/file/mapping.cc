#include "formats/file/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace openrnn::formats {

FileMapping::FileMapping(const Descriptor& file, std::uint64_t size, const std::string& path) {
  const auto length = static_cast<std::size_t>(size);
  if (length == 0) return;  // which mmap refuses
  void* data = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) throw_io_error("map", path, errno);
  data_ = data;
  size_ = length;
}

FileMapping::~FileMapping() {
  if (data_) ::munmap(data_, size_);
}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace openrnn::formats
