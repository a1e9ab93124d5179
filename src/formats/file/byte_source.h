// The input of a reader: a file, or memory in tests and fuzzing.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "formats/file/mapping.h"
#include "formats/file/system.h"

namespace openrnn::formats {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& path() const noexcept = 0;
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `out` with `count` bytes from `offset`. Thread-safe.
  /// Throws: FormatError if the file is too short, IoError if reading fails.
  virtual void read_at(std::uint64_t offset, void* out, std::size_t count) const = 0;
  /// Calls `visit` with `count` bytes from `offset` in their order: `at_once` at a time, the last
  /// ones fewer, or all of them. Throws: as read_at, and what `visit` throws.
  virtual void visit(std::uint64_t offset, std::uint64_t count, std::uint64_t at_once,
                     const std::function<void(std::string_view bytes)>& visit) const;
  /// All bytes, mapped at the first call; as long as this object. Thread-safe. Throws: IoError.
  virtual std::string_view mapped() const = 0;

  /// Throws: UnsupportedError for bytes that are known and not read, before memory is allocated.
  virtual void require_readable() const {}

  /// read_at into a string. The range is checked before memory is allocated for it.
  std::string read_string(std::uint64_t offset, std::uint64_t count) const;

 protected:
  /// Throws: FormatError unless [offset, offset + count) lies inside.
  void check_range(std::uint64_t offset, std::uint64_t count) const;
};

/// Bytes that the caller keeps alive.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override;
  std::string_view mapped() const override { return bytes_; }

 private:
  std::string path_;
  std::string_view bytes_;
};

/// A regular file, open for reading; its size is that at the time of opening.
class FileSource : public ByteSource {
 public:
  /// Throws: IoError, also for what is no regular file.
  explicit FileSource(const std::string& path);
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return size_; }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override;
  std::string_view mapped() const override;
  FileIdentity identity() const { return identity_of(file_); }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  mutable std::mutex mapping_mutex_;
  mutable FileMapping mapping_;
};

}  // namespace openrnn::formats
