// A string tensor: varint lengths, a checksum of the lengths, the bytes of all strings.

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/coding.h"

namespace openrnn::formats {

namespace {

// The checksum covers each length as a fixed-width number and not as the varint that is stored.
std::uint32_t extend_with_length(std::uint32_t crc, std::uint64_t length) {
  std::string bytes;
  if (length <= 0xffffffffu) {
    put_fixed(&bytes, static_cast<std::uint32_t>(length));
  } else {
    put_fixed(&bytes, length);
  }
  return crc32c_extend(crc, bytes.data(), bytes.size());
}

}  // namespace

std::vector<std::string> decode_strings(const std::string& path, const std::string& name,
                                        std::uint64_t offset, std::string_view bytes,
                                        std::uint64_t count, bool verify, std::uint32_t* crc) {
  const auto fail = [&](const std::string& what) {
    throw FormatError(path, offset, message("strings of tensor '", excerpt(name), "': ", what));
  };
  if (count > bytes.size()) {
    fail(message(bytes.size(), " bytes, expected the lengths of ", count, " strings"));
  }
  ByteCursor in(bytes);
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(count));
  *crc = 0;
  for (std::uint64_t& length : lengths) {
    if (!in.varint64(&length)) fail("a length is cut short");
    *crc = extend_with_length(*crc, length);
  }
  std::uint32_t stored = 0;
  if (!in.fixed(&stored)) fail("the checksum of the lengths is cut short");
  if (verify && stored != mask_crc(*crc)) {
    fail(message("the lengths have checksum ", mask_crc(*crc), ", expected ", stored));
  }
  *crc = crc32c_extend(*crc, &stored, sizeof stored);
  std::vector<std::string> strings;
  strings.reserve(lengths.size());
  for (const std::uint64_t length : lengths) {
    std::string_view value;
    if (!in.bytes(length, &value)) fail(message("a string of ", length, " bytes is cut short"));
    *crc = crc32c_extend(*crc, value.data(), value.size());
    strings.emplace_back(value);
  }
  if (!in.empty()) fail(message(in.remaining(), " bytes after the last string, expected none"));
  return strings;
}

std::string encode_strings(const std::vector<std::string>& strings, std::uint32_t* crc) {
  std::string bytes;
  *crc = 0;
  for (const std::string& value : strings) {
    put_varint64(&bytes, value.size());
    *crc = extend_with_length(*crc, value.size());
  }
  const std::uint32_t stored = mask_crc(*crc);
  put_fixed(&bytes, stored);
  *crc = crc32c_extend(*crc, &stored, sizeof stored);
  for (const std::string& value : strings) {
    bytes += value;
    *crc = crc32c_extend(*crc, value.data(), value.size());
  }
  return bytes;
}

}  // namespace openrnn::formats
