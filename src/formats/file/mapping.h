// The bytes of a file in the address space.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/file/system.h"

namespace openrnn::formats {

/// A read-only mapping, undone by the destructor.
class FileMapping {
 public:
  FileMapping() = default;
  /// Of the whole file; `path` is for the message. Throws: IoError.
  FileMapping(const Descriptor& file, std::uint64_t size, const std::string& path);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(FileMapping&& other) noexcept;

  std::string_view bytes() const noexcept { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace openrnn::formats
