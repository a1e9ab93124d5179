// The directory of a zip archive, with ZIP64; entries that are stored, or deflated.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "formats/file/byte_source.h"

namespace openrnn::formats {

struct ZipEntry {
  std::string name;
  /// 0: stored; 8: deflated.
  std::uint16_t method = 0;
  bool encrypted = false;
  std::uint32_t crc = 0;
  /// Bytes in the archive, and of the file.
  std::uint64_t stored_bytes = 0, bytes = 0;
  std::uint64_t header_offset = 0;
  /// Where its bytes begin.
  std::uint64_t offset = 0;
};

/// All of an archive but the bytes of its entries is read and checked when it is opened: that it is
/// one file of one volume, that names are unequal, that entries lie before the directory and do not
/// overlap. `file` outlives it.
class ZipArchive {
 public:
  /// Throws: FormatError, IoError.
  explicit ZipArchive(const ByteSource& file);
  ZipArchive(const ZipArchive&) = delete;

  const ByteSource& file() const noexcept { return file_; }
  /// In the order of the directory.
  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// nullptr if there is none.
  const ZipEntry* find(std::string_view name) const;
  /// Whether there are checksums: some writers leave them all 0.
  bool has_checksums() const noexcept { return has_checksums_; }
  /// Throws: UnsupportedError unless the entry is stored as it is; FormatError unless its sizes
  /// agree.
  void require_stored(const ZipEntry& entry) const;
  /// The bytes of a stored entry. Throws: as require_stored; FormatError for a wrong checksum.
  std::string read(const ZipEntry& entry) const;
  /// The bytes of a stored or deflated entry. Throws: as read, but UnsupportedError only for other
  /// methods, encryption and far more bytes than the archive has.
  std::string read_whole(const ZipEntry& entry) const;

 private:
  struct Directory {
    std::uint64_t entries = 0, offset = 0, bytes = 0;
  };
  Directory find_directory() const;
  Directory read_zip64(std::uint64_t end_offset) const;
  void read_directory(const Directory& directory);
  void read_zip64_extra(std::string_view extra, std::uint64_t offset, ZipEntry* entry) const;
  void find_bytes(ZipEntry* entry) const;
  void check_overlap(std::uint64_t directory_offset) const;
  void check_crc(const ZipEntry& entry, std::string_view bytes) const;
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;

  const ByteSource& file_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
  bool has_checksums_ = false;
};

}  // namespace openrnn::formats
