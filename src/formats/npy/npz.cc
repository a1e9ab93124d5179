#include "formats/npy/npz.h"

#include <algorithm>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/npy/header.h"
#include "formats/npy/npz_values.h"
#include "formats/zip/entry_source.h"
#include "formats/zip/inflate.h"

namespace openrnn::formats {

namespace {

constexpr std::string_view kNpyEnding = ".npy";

// What deflated entries have together when they are read is bounded by what the file has.
void require_bounded(const ZipArchive& archive) {
  std::uint64_t bytes = 0;
  for (const ZipEntry& entry : archive.entries()) {
    if (entry.method == 0) continue;
    if (__builtin_add_overflow(bytes, entry.bytes, &bytes)) bytes = UINT64_MAX;
    if (may_grow_to(archive.file().size(), bytes)) continue;
    throw UnsupportedError(message("[", excerpt(archive.file().path()), " @ ", entry.header_offset,
                                   "] up to '", excerpt(entry.name), "' the arrays have ", bytes,
                                   " bytes in an archive of ", archive.file().size(),
                                   ", expected at most ", kMostGrowth, " times as many"));
  }
}

class NpzReader {
 public:
  explicit NpzReader(std::unique_ptr<ByteSource> file) : file_(std::move(file)), archive_(*file_) {}

  FileContents read() {
    require_bounded(archive_);
    contents_.kind = FileKind::kNpz;
    const std::string list = std::string(kNpzValues) + std::string(kNpyEnding);
    if (const ZipEntry* const entry = archive_.find(list)) take_names(*entry);
    for (const ZipEntry& entry : archive_.entries()) {
      if (entry.name != list) take(entry);
    }
    contents_.sources.push_back(std::move(file_));
    return std::move(contents_);
  }

 private:
  /// The entry as a file of its own, kept in the contents.
  const ByteSource& source_of(const ZipEntry& entry) {
    contents_.sources.push_back(entry_source(archive_, entry));
    return *contents_.sources.back();
  }

  void take_names(const ZipEntry& entry) {
    const ByteSource& source = source_of(entry);
    const PlainValue names = read_npz_value(source, read_npy_header(source));
    const auto* const list = std::get_if<std::vector<std::string>>(&names);
    if (!list) {
      throw FormatError(source.path(), 0, "these are no names of values, expected strings");
    }
    values_.insert(list->begin(), list->end());
  }

  void take(const ZipEntry& entry) {
    const std::string name = entry.name.substr(0, entry.name.size() - kNpyEnding.size());
    if (name.empty() || !is_printable_utf8(name)) {
      throw FormatError(
          file_->path(), entry.header_offset,
          "the name '" + excerpt(name) + "' is empty, not UTF-8 or holds a control character");
    }
    const ByteSource& source = source_of(entry);
    NpyHeader header = read_npy_header(source);
    const bool is_value = values_.contains(name) || header.type.name == "string";
    if (is_value && is_npz_value(header, source.size() - header.offset)) {
      contents_.values.push_back({name, read_npz_value(source, header)});
    } else {
      add_tensor(entry, source, name, std::move(header));
    }
  }

  void add_tensor(const ZipEntry& entry, const ByteSource& source, const std::string& name,
                  NpyHeader header) {
    TensorPlace place{.extent = contents_.extents.size(),
                      .first = header.offset,
                      .element_bytes = static_cast<std::size_t>(header.type.element_bytes)};
    const std::uint64_t bytes = source.size() - header.offset;
    if (header.columns_first && header.shape.size() > 1 && place.element_bytes > 0 && bytes > 0) {
      place.strides.resize(header.shape.size());
      std::int64_t stride = 1;
      for (std::size_t d = 0; d < header.shape.size(); ++d) {
        place.strides[d] = stride;
        stride *= header.shape[d];
      }
    }
    // Of a stored entry the bytes of the archive, which may be mapped.
    const bool stored = entry.method == 0;
    Extent extent{
        stored ? file_.get() : &source, stored ? entry.offset : 0, entry.bytes, {}, !stored};
    if (stored && archive_.has_checksums()) extent.crc = entry.crc;
    contents_.extents.push_back(extent);
    contents_.places.push_back(std::move(place));
    contents_.tensors.push_back({name, header.type.name, std::move(header.shape), bytes});
  }

  std::unique_ptr<ByteSource> file_;
  ZipArchive archive_;
  std::unordered_set<std::string> values_;
  FileContents contents_;
};

}  // namespace

bool is_npz(const ZipArchive& archive) {
  return !archive.entries().empty() &&
         std::ranges::all_of(archive.entries(), [](const ZipEntry& entry) {
           return entry.name.ends_with(kNpyEnding);
         });
}

FileContents read_npz(std::unique_ptr<ByteSource> file) {
  return NpzReader(std::move(file)).read();
}

}  // namespace openrnn::formats
