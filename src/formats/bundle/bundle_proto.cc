#include "formats/bundle/bundle_proto.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "formats/proto_fields.h"

namespace openrnn::formats {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

std::string_view view_of(pbf_reader* in) {
  const protozero::data_view view = in->get_view();
  return {view.data(), view.size()};
}

// The field of the given number, a varint, or 0.
std::int64_t single_varint(std::string_view bytes, std::uint32_t tag, bool* present = nullptr) {
  std::int64_t value = 0;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == varint_field(tag)) {
      value = in.get_int64();
      if (present) *present = true;
    } else {
      in.skip();
    }
  }
  return value;
}

}  // namespace

Shape decode_shape(std::string_view bytes, bool* good) {
  Shape shape;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == message_field(2)) {
      shape.push_back(single_varint(view_of(&in), 1));
    } else if (in.tag_and_type() == varint_field(3)) {
      *good &= !in.get_bool();  // a stored tensor has a rank
    } else {
      in.skip();
    }
  }
  return shape;
}

TensorSlice decode_slice(std::string_view bytes) {
  TensorSlice slice;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == message_field(1)) {
      const std::string_view extent = view_of(&in);
      bool has_length = false;
      const std::int64_t length = single_varint(extent, 2, &has_length);
      slice.push_back({single_varint(extent, 1), has_length ? length : -1});
    } else {
      in.skip();
    }
  }
  return slice;
}

namespace {

void decode_entry_field(pbf_reader* in, BundleEntry* entry, bool* good) {
  switch (in->tag_and_type()) {
    case varint_field(1):
      entry->dtype = in->get_enum();
      break;
    case message_field(2):
      entry->shape = decode_shape(view_of(in), good);
      break;
    case varint_field(3):
      entry->shard = in->get_int32();
      break;
    case varint_field(4):
      entry->offset = in->get_int64();
      break;
    case varint_field(5):
      entry->size = in->get_int64();
      break;
    case tag_and_type(6, pbf_wire_type::fixed32):
      entry->crc = in->get_fixed32();
      break;
    case message_field(7):
      entry->slices.push_back(decode_slice(view_of(in)));
      break;
    default:
      in->skip();
  }
}

// A number in the order-preserving encoding of the table's keys: as many leading one bits as bytes
// follow, a zero, then the value; negative numbers have all bits flipped.
void append_ordered(std::string* out, std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  std::uint32_t length = 1;
  while (length < 10 && (magnitude >> (7 * length - 1)) != 0) ++length;
  std::string bytes(length, '\0');
  for (std::uint32_t i = 0; i < length; ++i) {
    const std::uint32_t shift = 8 * (length - 1 - i);
    bytes[i] = shift < 64 ? static_cast<char>(magnitude >> shift) : '\0';
  }
  const std::uint32_t header = (0xffff0000u >> length) & 0xffffu;
  bytes[0] = static_cast<char>(bytes[0] | static_cast<char>(header >> 8));
  if (length > 1) bytes[1] = static_cast<char>(bytes[1] | static_cast<char>(header));
  for (char& byte : bytes) byte = static_cast<char>(value < 0 ? ~byte : byte);
  *out += bytes;
}

}  // namespace

bool decode_header(std::string_view bytes, BundleHeader* header) try {
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == varint_field(1)) {
      header->num_shards = in.get_int32();
    } else if (in.tag_and_type() == varint_field(2)) {
      header->endianness = in.get_enum();
    } else if (in.tag_and_type() == message_field(3)) {
      header->min_consumer = static_cast<std::int32_t>(single_varint(view_of(&in), 2));
    } else {
      in.skip();
    }
  }
  return true;
} catch (const protozero::exception&) {
  return false;
}

bool decode_entry(std::string_view bytes, BundleEntry* entry) try {
  bool good = true;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) decode_entry_field(&in, entry, &good);
  return good;
} catch (const protozero::exception&) {
  return false;
}

std::string encode_header(std::int32_t num_shards) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_int32(1, num_shards);
  protozero::pbf_writer version(out, 3);
  version.add_int32(1, 1);
  return bytes;
}

std::string encode_entry(const BundleEntry& entry) {
  std::string shape;
  protozero::pbf_writer shape_out(shape);
  for (const std::int64_t size : entry.shape) {
    std::string dim;
    if (size) protozero::pbf_writer(dim).add_int64(1, size);
    shape_out.add_message(2, dim);
  }
  std::string bytes;
  protozero::pbf_writer out(bytes);
  if (entry.dtype) out.add_enum(1, entry.dtype);
  out.add_message(2, shape);
  // An absent field means zero, and TensorFlow leaves it out.
  if (entry.shard) out.add_int32(3, entry.shard);
  if (entry.offset) out.add_int64(4, entry.offset);
  if (entry.size) out.add_int64(5, entry.size);
  if (entry.crc) out.add_fixed32(6, entry.crc);
  return bytes;
}

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string key(1, '\0');
  for (const char byte : name) {
    key += byte;
    if (byte == '\0') key += '\xff';
    if (byte == '\xff') key += '\0';
  }
  key += std::string_view("\0\1", 2);
  // The rank, unsigned: its length in bytes, then those bytes. No rank needs two.
  const auto rank = static_cast<unsigned char>(slice.size());
  key += static_cast<char>(rank ? 1 : 0);
  if (rank) key += static_cast<char>(rank);
  for (const SliceExtent& extent : slice) {
    append_ordered(&key, extent.start);
    append_ordered(&key, extent.length);
  }
  return key;
}

}  // namespace openrnn::formats
