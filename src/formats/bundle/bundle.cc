#include "formats/bundle/bundle.h"

#include <algorithm>
#include <tuple>

#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/table/table.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

// TensorFlow's own limit on the rank of a tensor.
constexpr std::size_t kMaxRank = 254;
// Overlaps are searched pairwise, which is fast enough: variables are partitioned over tens of
// servers.
constexpr std::size_t kMaxSlices = 4096;

bool is_slice_key(std::string_view key) { return !key.empty() && key[0] == '\0'; }

}  // namespace

Bundle::Bundle(const ByteSource& index, const ShardOpener& open_shard, TensorBundleOptions options)
    : path_(index.path()), options_(options) {
  read_table(index, options.verify_checksums,
             [this](std::string_view key, std::string_view value, std::uint64_t offset) {
               take_entry(key, value, offset);
             });
  if (!has_header_) throw FormatError(path_, 0, "the table has no header, expected a checkpoint");
  open_shards(open_shard);
  for (const auto& [name, entry] : slices_) check_extent(name, entry);
  for (const auto& [name, entry] : entries_) {
    if (entry.slices.empty()) check_extent(name, entry);
  }
  check_overlap();
  for (const auto& [name, entry] : entries_) {
    if (!entry.slices.empty()) check_slices(name, entry);
    std::uint64_t bytes = static_cast<std::uint64_t>(entry.size);
    if (!entry.slices.empty()) {
      bytes = static_cast<std::uint64_t>(shape_size(entry.shape)) * tf_dtype_size(entry.dtype);
    }
    tensors_.push_back(
        {name, tf_dtype_name(entry.dtype), entry.shape, bytes, !entry.slices.empty()});
  }
}

void Bundle::take_entry(std::string_view key, std::string_view value, std::uint64_t offset) {
  if (key.empty()) return check_header(value, offset);
  if (!is_slice_key(key) && !is_printable_utf8(key)) {
    throw FormatError(path_, offset,
                      message("the name of tensor '", excerpt(key),
                              "' is not UTF-8 or holds a control character, expected neither"));
  }
  BundleEntry entry;
  if (!decode_entry(value, &entry)) {
    throw FormatError(path_, offset,
                      message("the entry of tensor '", excerpt(key), "' is damaged"));
  }
  (is_slice_key(key) ? slices_ : entries_).emplace(std::string(key), std::move(entry));
}

void Bundle::check_header(std::string_view value, std::uint64_t offset) {
  has_header_ = true;
  if (!decode_header(value, &header_) || header_.num_shards < 1) {
    throw FormatError(path_, offset, "the header of the checkpoint is damaged");
  }
  if (header_.endianness != 0) {
    throw UnsupportedError(message("[TensorBundleReader] ", path_, " is big-endian (",
                                   header_.endianness, "), expected little-endian (0)"));
  }
  if (header_.min_consumer > kBundleVersion) {
    throw UnsupportedError(message("[TensorBundleReader] ", path_, " asks for a reader of version ",
                                   header_.min_consumer, ", expected at most ", kBundleVersion));
  }
}

void Bundle::open_shards(const ShardOpener& open_shard) {
  const auto open_for = [&](const std::string& name, const BundleEntry& entry) {
    if (!entry.slices.empty()) return;
    if (entry.shard < 0 || entry.shard >= header_.num_shards) {
      throw FormatError(path_, 0,
                        message("tensor '", excerpt(name), "' is in data file ", entry.shard,
                                ", expected one of ", header_.num_shards));
    }
    auto& shard = shards_[entry.shard];
    if (!shard) shard = open_shard(entry.shard, header_.num_shards);
  };
  for (const auto& [name, entry] : entries_) open_for(name, entry);
  for (const auto& [key, entry] : slices_) open_for(key, entry);
}

void Bundle::check_extent(const std::string& name, const BundleEntry& entry) {
  const auto fail = [&](const std::string& what) {
    throw FormatError(path_, 0, message("tensor '", excerpt(name), "' ", what));
  };
  if (!entry.slices.empty()) fail("is a slice of a slice");
  if (entry.shape.size() > kMaxRank) fail(message("has rank ", entry.shape.size()));
  std::int64_t count = 0;
  try {
    count = shape_size(entry.shape);
  } catch (const ArgumentError&) {
    fail(message("has the impossible shape ", to_string(entry.shape)));
  }
  std::int64_t bytes = 0;
  const auto width = static_cast<std::int64_t>(tf_dtype_size(entry.dtype));
  if (__builtin_mul_overflow(count, width, &bytes) || (width && bytes != entry.size)) {
    fail(message("has ", entry.size, " bytes, expected ", count, " elements of ", width, " bytes"));
  }
  const ByteSource& shard = *shards_.at(entry.shard);
  const auto file_size = static_cast<std::int64_t>(shard.size());
  if (entry.offset < 0 || entry.size < 0 || entry.offset > file_size ||
      entry.size > file_size - entry.offset) {
    throw FormatError(shard.path(), shard.size(),
                      message("the file ends here, expected ", entry.size, " bytes of tensor '",
                              excerpt(name), "' at byte ", entry.offset));
  }
}

// No two tensors share bytes in a valid file. In a hostile one a few shared bytes could take any
// amount of memory and time.
void Bundle::check_overlap() const {
  struct Extent {
    std::int32_t shard;
    std::int64_t start, end;
    const std::string* name;
  };
  std::vector<Extent> extents;
  const auto add = [&](const std::string& name, const BundleEntry& entry) {
    if (!entry.slices.empty() || entry.size == 0) return;
    extents.push_back({entry.shard, entry.offset, entry.offset + entry.size, &name});
  };
  for (const auto& [name, entry] : entries_) add(name, entry);
  for (const auto& [key, entry] : slices_) add(key, entry);
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.shard, a.start) < std::tie(b.shard, b.start);
  });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    const Extent &last = extents[i - 1], &here = extents[i];
    if (here.shard != last.shard || here.start >= last.end) continue;
    throw FormatError(
        path_, 0,
        message("tensor '", excerpt(*here.name), "' begins at byte ", here.start, " of data file ",
                here.shard, ", inside tensor '", excerpt(*last.name), "', expected tensors apart"));
  }
}

void Bundle::check_slices(const std::string& name, const BundleEntry& entry) {
  const auto fail = [&](const std::string& what) {
    throw FormatError(path_, 0, message("partitioned tensor '", excerpt(name), "' ", what));
  };
  if (tf_dtype_size(entry.dtype) == 0) {
    fail(message("has element type ", tf_dtype_name(entry.dtype), ", expected one of fixed width"));
  }
  if (entry.shape.size() > kMaxRank) fail(message("has rank ", entry.shape.size()));
  if (entry.slices.size() > kMaxSlices) fail(message("has ", entry.slices.size(), " slices"));
  try {
    if (!slices_cover(entry.shape, entry.slices)) {
      fail("has slices that overlap, leave gaps or lie outside");
    }
  } catch (const ArgumentError&) {
    fail(message("has the impossible shape ", to_string(entry.shape)));
  }
  // Every slice has all its bytes in the file, so the whole is no larger than the files.
  for (const TensorSlice& slice : entry.slices) {
    const BundleEntry& part = slice_entry(name, slice);
    if (part.dtype != entry.dtype || part.shape != slice_shape(entry.shape, slice)) {
      fail(message("has a slice of shape ", to_string(part.shape), " and type ",
                   tf_dtype_name(part.dtype), ", expected ",
                   to_string(slice_shape(entry.shape, slice)), " and ",
                   tf_dtype_name(entry.dtype)));
    }
  }
}

const BundleEntry& Bundle::slice_entry(const std::string& name, const TensorSlice& slice) const {
  const auto found = slices_.find(slice_key(name, slice));
  if (found == slices_.end()) {
    throw FormatError(path_, 0,
                      message("partitioned tensor '", excerpt(name), "' lacks one of its slices"));
  }
  return found->second;
}

const BundleEntry* Bundle::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace openrnn::formats
