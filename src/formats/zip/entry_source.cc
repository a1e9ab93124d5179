#include "formats/zip/entry_source.h"

#include <algorithm>
#include <cstring>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/zip/crc32.h"
#include "formats/zip/inflate.h"
#include "formats/zip/zip_records.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

// As much of an entry as a header takes, and of the compressed bytes what that needs but for
// streams of empty blocks.
constexpr std::uint64_t kStartBytes = 1 << 14, kStartStored = 1 << 16;

/// An entry that is stored as it is: a part of the archive's file.
class StoredSource : public ByteSource {
 public:
  StoredSource(const ByteSource& file, const ZipEntry& entry)
      : file_(file),
        path_(file.path() + "/" + entry.name),
        first_(entry.offset),
        bytes_(entry.bytes) {}
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return bytes_; }
  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    check_range(offset, count);
    file_.read_at(first_ + offset, out, count);
  }
  std::string_view mapped() const override { return file_.mapped().substr(first_, bytes_); }

 private:
  const ByteSource& file_;
  std::string path_;
  std::uint64_t first_, bytes_;
};

class DeflatedSource : public ByteSource {
 public:
  DeflatedSource(const ByteSource& file, ZipEntry entry, bool has_checksum)
      : file_(file),
        path_(file.path() + "/" + entry.name),
        entry_(std::move(entry)),
        has_checksum_(has_checksum) {}
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size() const noexcept override { return entry_.bytes; }

  void read_at(std::uint64_t offset, void* out, std::size_t count) const override {
    check_range(offset, count);
    if (count == 0) return;
    if (count == size()) {
      decompress(static_cast<char*>(out));
    } else if (offset + count <= kStartBytes && offset + count < size()) {
      std::memcpy(out, start(offset + count).data() + offset, count);
    } else {
      // Not kept: an array is read once, and would be in memory twice.
      std::string all(static_cast<std::size_t>(size()), '\0');
      decompress(all.data());
      std::memcpy(out, all.data() + offset, count);
    }
  }

  std::string_view mapped() const override {
    const std::lock_guard lock(mutex_);
    if (all_.size() != size()) {
      std::string all(static_cast<std::size_t>(size()), '\0');
      decompress(all.data());
      all_ = std::move(all);
    }
    return all_;
  }

 private:
  void decompress(char* out) const {
    const std::string stored = file_.read_string(entry_.offset, entry_.stored_bytes);
    const auto bytes = static_cast<std::size_t>(entry_.bytes);
    if (!inflate(stored, out, bytes)) refuse();
    const std::uint32_t crc = crc32_extend(0, out, bytes);
    if (has_checksum_ && crc != entry_.crc) {
      throw FormatError(
          file_.path(), entry_.offset,
          message("'", excerpt(entry_.name), "' has checksum ", crc, ", expected ", entry_.crc));
    }
  }
  std::string start(std::uint64_t bytes) const {
    std::string out(static_cast<std::size_t>(bytes), '\0');
    for (const std::uint64_t most : {kStartStored, entry_.stored_bytes}) {
      const std::string stored =
          file_.read_string(entry_.offset, std::min(most, entry_.stored_bytes));
      if (inflate_start(stored, out.data(), out.size())) return out;
    }
    refuse();
  }
  [[noreturn]] void refuse() const {
    throw FormatError(file_.path(), entry_.offset,
                      message("'", excerpt(entry_.name), "' is no deflate stream of ", entry_.bytes,
                              " bytes, expected one"));
  }

  const ByteSource& file_;
  std::string path_;
  ZipEntry entry_;
  bool has_checksum_;
  mutable std::mutex mutex_;
  mutable std::string all_;
};

}  // namespace

std::unique_ptr<ByteSource> entry_source(const ZipArchive& archive, const ZipEntry& entry) {
  if (entry.method == kZipDeflated && !entry.encrypted) {
    return std::make_unique<DeflatedSource>(archive.file(), entry, archive.has_checksums());
  }
  archive.require_stored(entry);
  return std::make_unique<StoredSource>(archive.file(), entry);
}

}  // namespace openrnn::formats
