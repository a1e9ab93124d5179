// A tensor bundle over any byte sources: the reader without its file names.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/bundle/bundle_proto.h"
#include "formats/file/byte_source.h"
#include "openrnn/formats.h"

namespace openrnn::formats {

/// A bundle of at most this version can be read.
inline constexpr std::int32_t kBundleVersion = 1;

class Bundle {
 public:
  using ShardOpener =
      std::function<std::unique_ptr<ByteSource>(std::int32_t shard, std::int32_t num_shards)>;

  /// Reads and checks the whole index, opens the data files that it names.
  Bundle(const ByteSource& index, const ShardOpener& open_shard, TensorBundleOptions options);

  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_; }
  /// nullptr for an unknown name.
  const BundleEntry* find(std::string_view name) const;
  /// Throws: as TensorBundleReader::read.
  Array read(const std::string& name, const BundleEntry& entry) const;
  /// The elements of a readable one as they are stored, `at_once` bytes at a time, or all of one in
  /// slices. Throws: as read(), a wrong checksum after the last call; and what `visit` throws.
  void visit(const std::string& name, const BundleEntry& entry, std::uint64_t at_once,
             const std::function<void(std::string_view bytes)>& visit) const;
  StringTensor read_strings(const std::string& name, const BundleEntry& entry) const;
  /// Throws: FormatError at the first wrong checksum.
  void verify() const;

 private:
  void take_entry(std::string_view key, std::string_view value, std::uint64_t offset);
  void check_header(std::string_view value, std::uint64_t offset);
  void check_extent(const std::string& name, const BundleEntry& entry);
  void check_slices(const std::string& name, const BundleEntry& entry);
  void check_overlap() const;
  void open_shards(const ShardOpener& open_shard);
  const BundleEntry& slice_entry(const std::string& name, const TensorSlice& slice) const;
  void read_plain(const std::string& name, const BundleEntry& entry, void* out) const;
  void read_slices(const std::string& name, const BundleEntry& entry, Array* out) const;
  void verify_entry(const std::string& name, const BundleEntry& entry) const;
  void compare_crc(const std::string& name, const BundleEntry& entry, std::uint32_t crc) const;

  std::string path_;
  TensorBundleOptions options_;
  BundleHeader header_;
  bool has_header_ = false;
  std::map<std::string, BundleEntry, std::less<>> entries_;
  /// By their keys, which are not names.
  std::map<std::string, BundleEntry, std::less<>> slices_;
  std::map<std::int32_t, std::unique_ptr<ByteSource>> shards_;
  std::vector<TensorInfo> tensors_;
};

/// The dimensions of a slice of a tensor of this shape.
Shape slice_shape(const Shape& full, const TensorSlice& slice);
/// Whether the slices lie inside, do not overlap, and together are the whole tensor.
bool slices_cover(const Shape& full, const std::vector<TensorSlice>& slices);
/// Copies the elements of a slice to their place in the full tensor.
void place_slice(const Shape& full, const TensorSlice& slice, std::size_t element_bytes,
                 const void* from, void* to);

/// The strings of a tensor from its bytes in the data file, and the checksum (not masked) of them
/// as TensorFlow computes it. Throws: FormatError naming `path` and `name`.
std::vector<std::string> decode_strings(const std::string& path, const std::string& name,
                                        std::uint64_t offset, std::string_view bytes,
                                        std::uint64_t count, bool verify, std::uint32_t* crc);
/// The bytes of a string tensor; `crc` (not masked) is that of its entry.
std::string encode_strings(const std::vector<std::string>& strings, std::uint32_t* crc);

}  // namespace openrnn::formats
