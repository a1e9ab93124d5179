// A source that owns its bytes: elements that were decoded.
#pragma once

#include <utility>

#include "formats/file/byte_source.h"

namespace openrnn::formats {

class OwnedSource : public ByteSource {
 public:
  OwnedSource(std::string path, std::string bytes)
      : bytes_(std::move(bytes)), source_(std::move(path), bytes_) {}
  const std::string& path() const noexcept override { return source_.path(); }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    source_.read_at(offset, out, count);
  }
  std::string_view mapped() const override { return bytes_; }

 private:
  std::string bytes_;
  MemorySource source_;
};

}  // namespace openrnn::formats
