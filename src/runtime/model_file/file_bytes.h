// The bytes of a model file: mapped, or of the caller's memory.
#pragma once

#include <span>
#include <string>

#include "openrnn/base.h"

namespace openrnn::runtime {

/// At a multiple of 8 bytes, so that after a header of whole words every element is aligned.
class FileBytes {
 public:
  /// Maps a regular file. Throws: IoError.
  explicit FileBytes(const std::string& path);
  /// Borrows, or copies what is not aligned.
  explicit FileBytes(std::span<const std::byte> bytes);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::span<const std::byte> all() const noexcept { return bytes_; }

 private:
  AlignedBuffer copy_;
  std::span<const std::byte> bytes_;
  void* mapped_ = nullptr;
};

}  // namespace openrnn::runtime
