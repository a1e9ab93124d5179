#include "formats/zip/zip_reader.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"
#include "formats/coding.h"
#include "formats/zip/crc32.h"
#include "formats/zip/inflate.h"
#include "formats/zip/zip_records.h"
#include "openrnn/base.h"

namespace openrnn::formats {

namespace {

// The longest comment at the end of an archive.
constexpr std::uint64_t kMaxComment = 0xffff;

template <class T>
T take(ByteCursor* in) {
  T value{};
  in->fixed(&value);
  return value;
}

std::string_view take_bytes(ByteCursor* in, std::uint64_t size) {
  std::string_view bytes;
  in->bytes(size, &bytes);
  return bytes;
}

}  // namespace

void ZipArchive::fail(std::uint64_t offset, const std::string& what) const {
  throw FormatError(file_.path(), offset, what);
}

ZipArchive::ZipArchive(const ByteSource& file) : file_(file) {
  const Directory directory = find_directory();
  read_directory(directory);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!numbers_.emplace(entries_[i].name, i).second) {
      fail(directory.offset, "'" + excerpt(entries_[i].name) + "' is there twice, expected once");
    }
    find_bytes(&entries_[i]);
    has_checksums_ |= entries_[i].crc != 0;
  }
  check_overlap(directory.offset);
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? nullptr : &entries_[found->second];
}

// The end record is the last one whose comment reaches to the end of the file.
ZipArchive::Directory ZipArchive::find_directory() const {
  const std::uint64_t tail_bytes = std::min(file_.size(), kZipEndBytes + kMaxComment);
  const std::uint64_t tail_offset = file_.size() - tail_bytes;
  const std::string tail = file_.read_string(tail_offset, tail_bytes);
  for (std::size_t i = tail.size() < kZipEndBytes ? 0 : tail.size() - kZipEndBytes + 1; i-- > 0;) {
    ByteCursor in(std::string_view(tail).substr(i));
    if (take<std::uint32_t>(&in) != kZipEndSignature) continue;
    const std::uint64_t end_offset = tail_offset + i;
    const auto disk = take<std::uint16_t>(&in), first_disk = take<std::uint16_t>(&in);
    const auto here = take<std::uint16_t>(&in), entries = take<std::uint16_t>(&in);
    const auto bytes = take<std::uint32_t>(&in), offset = take<std::uint32_t>(&in);
    if (take<std::uint16_t>(&in) != in.remaining()) continue;
    if (entries == kZipCountIn64 || bytes == kZipIn64 || offset == kZipIn64) {
      return read_zip64(end_offset);
    }
    if (disk != 0 || first_disk != 0 || here != entries) {
      fail(end_offset, "this is a part of a zip archive, expected one in a single file");
    }
    if (offset > end_offset || bytes > end_offset - offset) {
      fail(end_offset, message("the directory of the zip archive has ", bytes, " bytes at ", offset,
                               ", expected it before its end record"));
    }
    return {entries, offset, bytes};
  }
  fail(file_.size(), "the zip archive has no end record, expected one: the file is cut short");
}

ZipArchive::Directory ZipArchive::read_zip64(std::uint64_t end_offset) const {
  if (end_offset < kZip64LocatorBytes) fail(end_offset, "there is no ZIP64 locator, expected one");
  const std::uint64_t locator_offset = end_offset - kZip64LocatorBytes;
  const std::string locator = file_.read_string(locator_offset, kZip64LocatorBytes);
  ByteCursor in(locator);
  if (take<std::uint32_t>(&in) != kZip64LocatorSignature) {
    fail(locator_offset, "there is no ZIP64 locator, expected one");
  }
  take<std::uint32_t>(&in);  // the disk
  const auto record_offset = take<std::uint64_t>(&in);
  if (record_offset > locator_offset || locator_offset - record_offset < kZip64EndBytes) {
    fail(locator_offset,
         message("the ZIP64 end record is at ", record_offset, ", expected it before its locator"));
  }
  const std::string record = file_.read_string(record_offset, kZip64EndBytes);
  ByteCursor fields(record);
  if (take<std::uint32_t>(&fields) != kZip64EndSignature) {
    fail(record_offset, "there is no ZIP64 end record, expected one");
  }
  take_bytes(&fields, 8 + 2 + 2);  // size of the record, versions
  const auto disk = take<std::uint32_t>(&fields), first_disk = take<std::uint32_t>(&fields);
  const auto here = take<std::uint64_t>(&fields), entries = take<std::uint64_t>(&fields);
  const auto bytes = take<std::uint64_t>(&fields), offset = take<std::uint64_t>(&fields);
  if (disk != 0 || first_disk != 0 || here != entries) {
    fail(record_offset, "this is a part of a zip archive, expected one in a single file");
  }
  if (offset > record_offset || bytes > record_offset - offset) {
    fail(record_offset, message("the directory of the zip archive has ", bytes, " bytes at ",
                                offset, ", expected it before its end record"));
  }
  return {entries, offset, bytes};
}

void ZipArchive::read_directory(const Directory& directory) {
  const std::string bytes = file_.read_string(directory.offset, directory.bytes);
  ByteCursor in(bytes);
  while (!in.empty()) {
    const std::uint64_t offset = directory.offset + bytes.size() - in.remaining();
    if (in.remaining() < kZipCentralBytes || take<std::uint32_t>(&in) != kZipCentralSignature) {
      fail(offset, "there is no entry of the zip archive's directory, expected one");
    }
    ZipEntry entry;
    take<std::uint32_t>(&in);  // versions
    const auto flags = take<std::uint16_t>(&in);
    entry.encrypted = (flags & kZipEncrypted) != 0;
    entry.method = take<std::uint16_t>(&in);
    take<std::uint32_t>(&in);  // time and date
    entry.crc = take<std::uint32_t>(&in);
    entry.stored_bytes = take<std::uint32_t>(&in);
    entry.bytes = take<std::uint32_t>(&in);
    const std::uint64_t name = take<std::uint16_t>(&in), extra = take<std::uint16_t>(&in),
                        comment = take<std::uint16_t>(&in);
    take_bytes(&in, 2 + 2 + 4);  // disk and attributes
    entry.header_offset = take<std::uint32_t>(&in);
    if (in.remaining() < name + extra + comment) {
      fail(offset, "an entry of the zip archive's directory reaches beyond it");
    }
    entry.name = take_bytes(&in, name);
    read_zip64_extra(take_bytes(&in, extra), offset, &entry);
    take_bytes(&in, comment);
    entries_.push_back(std::move(entry));
  }
  if (entries_.size() != directory.entries) {
    fail(directory.offset, message("the zip archive's directory has ", entries_.size(),
                                   " entries, expected ", directory.entries));
  }
}

// It has those values alone that did not fit, in this order.
void ZipArchive::read_zip64_extra(std::string_view extra, std::uint64_t offset,
                                  ZipEntry* entry) const {
  std::uint64_t* const wide[] = {&entry->bytes, &entry->stored_bytes, &entry->header_offset};
  const auto is_in_64 = [](const std::uint64_t* value) { return *value == kZipIn64; };
  if (std::none_of(std::begin(wide), std::end(wide), is_in_64)) return;
  ByteCursor in(extra);
  while (in.remaining() >= 4) {
    const auto id = take<std::uint16_t>(&in), size = take<std::uint16_t>(&in);
    if (in.remaining() < size) break;
    ByteCursor field(take_bytes(&in, size));
    if (id != kZip64Extra) continue;
    for (std::uint64_t* const value : wide) {
      if (is_in_64(value) && !field.fixed(value)) {
        fail(offset, "the ZIP64 field of '" + excerpt(entry->name) + "' is cut short");
      }
    }
    return;
  }
  fail(offset, "there is no ZIP64 field of '" + excerpt(entry->name) + "', expected one");
}

void ZipArchive::find_bytes(ZipEntry* entry) const {
  const std::string header = file_.read_string(entry->header_offset, kZipLocalBytes);
  ByteCursor in(header);
  if (take<std::uint32_t>(&in) != kZipLocalSignature) {
    fail(entry->header_offset,
         "there is no header of '" + excerpt(entry->name) + "', expected one");
  }
  take_bytes(&in, 4);  // version and flags
  const auto method = take<std::uint16_t>(&in);
  take_bytes(&in, 4 + 4 + 4 + 4);  // time, checksum, sizes: the directory's count
  const std::uint64_t name = take<std::uint16_t>(&in), extra = take<std::uint16_t>(&in);
  const std::uint64_t name_offset = entry->header_offset + kZipLocalBytes;
  if (method != entry->method || name != entry->name.size() ||
      file_.read_string(name_offset, name) != entry->name) {
    fail(entry->header_offset, "the header of '" + excerpt(entry->name) +
                                   "' has another name or method, expected the directory's");
  }
  entry->offset = name_offset + name + extra;
  if (entry->offset > file_.size() || entry->stored_bytes > file_.size() - entry->offset) {
    fail(entry->header_offset, message("'", excerpt(entry->name), "' has ", entry->stored_bytes,
                                       " bytes, expected it to end inside the file"));
  }
}

void ZipArchive::check_overlap(std::uint64_t directory_offset) const {
  std::vector<const ZipEntry*> sorted;
  for (const ZipEntry& entry : entries_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const ZipEntry* a, const ZipEntry* b) {
    return a->header_offset < b->header_offset;
  });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::uint64_t end = sorted[i]->offset + sorted[i]->stored_bytes;
    const std::uint64_t next =
        i + 1 < sorted.size() ? sorted[i + 1]->header_offset : directory_offset;
    if (end <= next) continue;
    fail(sorted[i]->header_offset, message("'", excerpt(sorted[i]->name), "' ends at ", end,
                                           ", expected at most ", next, ", where the next begins"));
  }
}

void ZipArchive::require_stored(const ZipEntry& entry) const {
  if (entry.method != 0 || entry.encrypted) {
    throw UnsupportedError(message(
        "[", excerpt(file_.path()), " @ ", entry.header_offset, "] '", excerpt(entry.name), "' is ",
        entry.encrypted ? "encrypted" : "compressed", ", expected it stored as it is"));
  }
  if (entry.bytes != entry.stored_bytes) {
    fail(entry.header_offset, message("'", excerpt(entry.name), "' has ", entry.bytes,
                                      " bytes, expected ", entry.stored_bytes, " as are stored"));
  }
}

void ZipArchive::check_crc(const ZipEntry& entry, std::string_view bytes) const {
  const std::uint32_t crc = crc32_extend(0, bytes.data(), bytes.size());
  if (has_checksums_ && crc != entry.crc) {
    fail(entry.offset,
         message("'", excerpt(entry.name), "' has checksum ", crc, ", expected ", entry.crc));
  }
}

std::string ZipArchive::read(const ZipEntry& entry) const {
  require_stored(entry);
  std::string bytes = file_.read_string(entry.offset, entry.bytes);
  check_crc(entry, bytes);
  return bytes;
}

std::string ZipArchive::read_whole(const ZipEntry& entry) const {
  if (entry.method != kZipDeflated || entry.encrypted) return read(entry);
  if (!may_grow_to(file_.size(), entry.bytes)) {
    throw UnsupportedError(message("[", excerpt(file_.path()), " @ ", entry.header_offset, "] '",
                                   excerpt(entry.name), "' has ", entry.bytes,
                                   " bytes in an archive of ", file_.size(), ", expected at most ",
                                   kMostGrowth, " times as many"));
  }
  const std::string stored = file_.read_string(entry.offset, entry.stored_bytes);
  std::string bytes(static_cast<std::size_t>(entry.bytes), '\0');
  if (!inflate(stored, bytes.data(), bytes.size())) {
    fail(entry.offset, message("'", excerpt(entry.name), "' is no deflate stream of ", entry.bytes,
                               " bytes, expected one"));
  }
  check_crc(entry, bytes);
  return bytes;
}

}  // namespace openrnn::formats
