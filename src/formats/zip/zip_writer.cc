#include "formats/zip/zip_writer.h"

#include <algorithm>

#include "formats/coding.h"
#include "formats/zip/crc32.h"

namespace openrnn::formats {

namespace {

constexpr std::uint16_t kVersion = 20, kZip64Version = 45;
// Midnight of 1980-01-01, the first: equal tensors give equal files.
constexpr std::uint16_t kTime = 0, kDate = 0x0021;
// Padding, in the field that PyTorch uses for it.
constexpr std::uint16_t kPaddingExtra = 0x4246;
constexpr std::uint64_t kExtraHead = 4;

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  offset_ += bytes.size();
}

std::uint32_t ZipWriter::narrow(std::uint64_t value) const {
  return value >= in_64_ ? kZipIn64 : static_cast<std::uint32_t>(value);
}

void ZipWriter::add(const std::string& name, std::initializer_list<std::string_view> pieces) {
  Entry entry{name, 0, 0, offset_};
  for (const std::string_view piece : pieces) {
    entry.crc = crc32_extend(entry.crc, piece.data(), piece.size());
    entry.bytes += piece.size();
  }
  const std::uint64_t bytes = entry.bytes;
  const bool wide = bytes >= in_64_;
  std::string extra;
  if (wide) {
    put_fixed(&extra, kZip64Extra);
    put_fixed(&extra, std::uint16_t{16});
    put_fixed(&extra, bytes);
    put_fixed(&extra, bytes);
  }
  const std::uint64_t begin = offset_ + kZipLocalBytes + name.size() + extra.size() + kExtraHead;
  const auto padding = static_cast<std::uint16_t>((alignment_ - begin % alignment_) % alignment_);
  put_fixed(&extra, kPaddingExtra);
  put_fixed(&extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  put_fixed(&header, kZipLocalSignature);
  put_fixed(&header, wide ? kZip64Version : kVersion);
  put_fixed(&header, kZipUtf8);
  put_fixed(&header, std::uint16_t{0});  // stored
  put_fixed(&header, kTime);
  put_fixed(&header, kDate);
  put_fixed(&header, entry.crc);
  put_fixed(&header, narrow(bytes));
  put_fixed(&header, narrow(bytes));
  put_fixed(&header, static_cast<std::uint16_t>(name.size()));
  put_fixed(&header, static_cast<std::uint16_t>(extra.size()));
  write(header + name + extra);
  for (const std::string_view piece : pieces) write(piece);
  entries_.push_back(std::move(entry));
}

std::string ZipWriter::central_record(const Entry& entry) const {
  std::string wide;
  const bool wide_bytes = entry.bytes >= in_64_, wide_offset = entry.offset >= in_64_;
  if (wide_bytes || wide_offset) {
    put_fixed(&wide, kZip64Extra);
    put_fixed(&wide, static_cast<std::uint16_t>((wide_bytes ? 16 : 0) + (wide_offset ? 8 : 0)));
    if (wide_bytes) put_fixed(&wide, entry.bytes);
    if (wide_bytes) put_fixed(&wide, entry.bytes);
    if (wide_offset) put_fixed(&wide, entry.offset);
  }
  const std::uint16_t version = wide.empty() ? kVersion : kZip64Version;
  std::string record;
  put_fixed(&record, kZipCentralSignature);
  put_fixed(&record, version);
  put_fixed(&record, version);
  put_fixed(&record, kZipUtf8);
  put_fixed(&record, std::uint16_t{0});  // stored
  put_fixed(&record, kTime);
  put_fixed(&record, kDate);
  put_fixed(&record, entry.crc);
  put_fixed(&record, narrow(entry.bytes));
  put_fixed(&record, narrow(entry.bytes));
  put_fixed(&record, static_cast<std::uint16_t>(entry.name.size()));
  put_fixed(&record, static_cast<std::uint16_t>(wide.size()));
  record.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
  put_fixed(&record, narrow(entry.offset));
  return record + entry.name + wide;
}

void ZipWriter::finish() {
  const std::uint64_t begin = offset_;
  for (const Entry& entry : entries_) write(central_record(entry));
  const std::uint64_t bytes = offset_ - begin, count = entries_.size(), end = offset_;
  if (begin >= in_64_ || bytes >= in_64_ || count >= kZipCountIn64) {
    std::string record;
    put_fixed(&record, kZip64EndSignature);
    put_fixed(&record, kZip64EndBytes - 12);  // what follows this field
    put_fixed(&record, kZip64Version);
    put_fixed(&record, kZip64Version);
    put_fixed(&record, std::uint64_t{0});  // disks
    put_fixed(&record, count);
    put_fixed(&record, count);
    put_fixed(&record, bytes);
    put_fixed(&record, begin);
    put_fixed(&record, kZip64LocatorSignature);
    put_fixed(&record, std::uint32_t{0});
    put_fixed(&record, end);
    put_fixed(&record, std::uint32_t{1});
    write(record);
  }
  const auto narrow_count =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kZipCountIn64));
  std::string record;
  put_fixed(&record, kZipEndSignature);
  put_fixed(&record, std::uint32_t{0});  // disks
  put_fixed(&record, narrow_count);
  put_fixed(&record, narrow_count);
  put_fixed(&record, narrow(bytes));
  put_fixed(&record, narrow(begin));
  put_fixed(&record, std::uint16_t{0});  // comment
  write(record);
}

}  // namespace openrnn::formats
