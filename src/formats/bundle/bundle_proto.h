// The two protocol buffers that a tensor bundle's index holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::formats {

struct BundleHeader {
  std::int32_t num_shards = 0;
  std::int32_t endianness = 0;  // 0 little, 1 big
  std::int32_t min_consumer = 0;
};

/// One dimension of a slice; length -1 is the whole dimension.
struct SliceExtent {
  std::int64_t start = 0;
  std::int64_t length = -1;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that a rewritten `a < b` compares with
  friend auto operator<=>(const SliceExtent&, const SliceExtent&) = default;
};
using TensorSlice = std::vector<SliceExtent>;

struct BundleEntry {
  int dtype = 0;
  Shape shape;
  std::int32_t shard = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::uint32_t crc = 0;  // masked
  /// Not empty: the bytes are those of the slices, and shard, offset, size and crc mean nothing.
  std::vector<TensorSlice> slices;
};

// Decoding checks the encoding alone, and returns false if the bytes are no such message.
bool decode_header(std::string_view bytes, BundleHeader* header);
bool decode_entry(std::string_view bytes, BundleEntry* entry);

/// TensorShapeProto and TensorSliceProto. `good` becomes false for a shape without a rank.
/// Throws: protozero's exceptions, for bytes that are no such message.
Shape decode_shape(std::string_view bytes, bool* good);
TensorSlice decode_slice(std::string_view bytes);

std::string encode_header(std::int32_t num_shards);
/// Byte for byte what TensorFlow writes. Slices are not written.
std::string encode_entry(const BundleEntry& entry);

/// The key under which one slice of the tensor `name` is stored.
std::string slice_key(std::string_view name, const TensorSlice& slice);

}  // namespace openrnn::formats
