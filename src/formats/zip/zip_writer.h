// Writes a zip archive of stored entries, with ZIP64 where it is needed.
#pragma once

#include <initializer_list>
#include <vector>

#include "formats/file/atomic_file.h"
#include "formats/zip/zip_records.h"

namespace openrnn::formats {

class ZipWriter {
 public:
  /// Entries begin at multiples of `alignment`. Sizes and offsets from `in_64` on take ZIP64
  /// fields: smaller for tests alone. `file` outlives it.
  ZipWriter(OutputFile* file, std::uint64_t alignment, std::uint64_t in_64 = kZipIn64)
      : file_(*file), alignment_(alignment), in_64_(in_64) {}
  /// Names are given once and have fewer than 2^16 bytes.
  void add(const std::string& name, const void* data, std::uint64_t bytes) {
    add(name, {{static_cast<const char*>(data), static_cast<std::size_t>(bytes)}});
  }
  /// An entry of pieces one behind the other.
  void add(const std::string& name, std::initializer_list<std::string_view> pieces);
  /// The directory; nothing can be added after it.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    std::uint64_t bytes = 0, offset = 0;
  };
  void write(std::string_view bytes);
  std::uint32_t narrow(std::uint64_t value) const;
  std::string central_record(const Entry& entry) const;

  OutputFile& file_;
  std::uint64_t alignment_, in_64_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace openrnn::formats
