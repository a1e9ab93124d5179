#include "formats/table/snappy.h"

#include "formats/coding.h"

namespace openrnn::formats {

namespace {

// The densest element makes 64 bytes of 3 (11 bytes of 2 when the offset is short), so a larger
// claimed size is false and would cost memory.
constexpr std::uint64_t kMaxExpansion = 64;

// A little-endian number of `count` bytes.
bool take_number(ByteCursor* in, std::uint32_t count, std::uint32_t* value) {
  std::string_view bytes;
  if (!in->bytes(count, &bytes)) return false;
  *value = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    *value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return true;
}

// Element type 0: the length less one is in the tag, or for 60 to 63 in 1 to 4 bytes after it.
bool take_literal(std::uint32_t tag, ByteCursor* in, std::string* out) {
  std::uint32_t length = tag >> 2;
  if (length >= 60 && !take_number(in, length - 59, &length)) return false;
  std::string_view bytes;
  if (!in->bytes(std::uint64_t{length} + 1, &bytes)) return false;
  out->append(bytes);
  return true;
}

// Types 1 to 3: copies `length` bytes from `offset` back; source and target may overlap.
bool take_copy(std::uint32_t tag, ByteCursor* in, std::string* out, std::size_t limit) {
  std::uint32_t offset = 0;
  std::uint32_t length = (tag >> 2) + 1;
  const std::uint32_t type = tag & 3;
  if (type == 1) {
    length = ((tag >> 2) & 7) + 4;
    if (!take_number(in, 1, &offset)) return false;
    offset |= (tag >> 5) << 8;
  } else if (!take_number(in, type == 2 ? 2 : 4, &offset)) {
    return false;
  }
  if (offset == 0 || offset > out->size() || length > limit - out->size()) return false;
  for (std::uint32_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - offset]);
  return true;
}

}  // namespace

std::optional<std::string> snappy_decompress(std::string_view compressed) {
  ByteCursor in(compressed);
  std::uint32_t size = 0;
  if (!in.varint32(&size) || size > kMaxExpansion * compressed.size()) return std::nullopt;
  std::string out;
  out.reserve(size);
  while (!in.empty()) {
    std::uint32_t tag = 0;
    take_number(&in, 1, &tag);
    const bool good =
        (tag & 3) == 0 ? take_literal(tag, &in, &out) : take_copy(tag, &in, &out, size);
    if (!good || out.size() > size) return std::nullopt;
  }
  if (out.size() != size) return std::nullopt;
  return out;
}

}  // namespace openrnn::formats
