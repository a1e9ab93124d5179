// Reading the bytes of tensors, with their checksums.

#include <algorithm>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "formats/bundle/bundle.h"
#include "formats/tf_dtype.h"

namespace openrnn::formats {

namespace {

// Bytes that verify() reads at a time.
constexpr std::uint64_t kVerifiedBytes = std::uint64_t{1} << 20;

// Any other byte in a C++ bool is undefined behaviour.
void check_bools(const ByteSource& shard, const std::string& name, std::uint64_t offset,
                 const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  const auto* bad = std::find_if(bytes, bytes + size, [](unsigned char b) { return b > 1; });
  if (bad != bytes + size) {
    throw FormatError(
        shard.path(), offset + static_cast<std::uint64_t>(bad - bytes),
        message("tensor '", excerpt(name), "' holds ", int{*bad}, ", expected 0 or 1"));
  }
}

}  // namespace

void Bundle::compare_crc(const std::string& name, const BundleEntry& entry,
                         std::uint32_t crc) const {
  if (!options_.verify_checksums || mask_crc(crc) == entry.crc) return;
  throw FormatError(shards_.at(entry.shard)->path(), static_cast<std::uint64_t>(entry.offset),
                    message("tensor '", excerpt(name), "' has checksum ", mask_crc(crc),
                            ", expected ", entry.crc));
}

void Bundle::read_plain(const std::string& name, const BundleEntry& entry, void* out) const {
  const ByteSource& shard = *shards_.at(entry.shard);
  const auto offset = static_cast<std::uint64_t>(entry.offset);
  const auto size = static_cast<std::size_t>(entry.size);
  shard.read_at(offset, out, size);
  compare_crc(name, entry, crc32c_extend(0, out, size));
  if (from_tf_dtype(entry.dtype) == DType::kBool) check_bools(shard, name, offset, out, size);
}

void Bundle::read_slices(const std::string& name, const BundleEntry& entry, Array* out) const {
  for (const TensorSlice& slice : entry.slices) {
    const BundleEntry& part = slice_entry(name, slice);
    std::string bytes(static_cast<std::size_t>(part.size), '\0');
    read_plain(name, part, bytes.data());
    place_slice(entry.shape, slice, dtype_size(out->dtype()), bytes.data(), out->data());
  }
}

Array Bundle::read(const std::string& name, const BundleEntry& entry) const {
  const std::optional<DType> dtype = from_tf_dtype(entry.dtype);
  if (entry.dtype == kTfString) {
    throw TypeError(message("[read] tensor '", excerpt(name), "' holds strings, expected numbers"));
  }
  if (!dtype) {
    throw UnsupportedError(
        message("[read] tensor '", excerpt(name), "' has element type ", tf_dtype_name(entry.dtype),
                ", expected float16, bfloat16, float32, float64, int32, int64, uint8, bool "
                "or string"));
  }
  Array out(*dtype, entry.shape);
  if (entry.slices.empty()) {
    read_plain(name, entry, out.data());
  } else {
    read_slices(name, entry, &out);
  }
  return out;
}

void Bundle::visit(const std::string& name, const BundleEntry& entry, std::uint64_t at_once,
                   const std::function<void(std::string_view bytes)>& visit) const {
  if (!entry.slices.empty()) {
    const Array whole = read(name, entry);
    return visit({static_cast<const char*>(whole.data()), whole.size_bytes()});
  }
  std::uint32_t crc = 0;
  shards_.at(entry.shard)
      ->visit(static_cast<std::uint64_t>(entry.offset), static_cast<std::uint64_t>(entry.size),
              at_once, [&](std::string_view bytes) {
                crc = crc32c_extend(crc, bytes.data(), bytes.size());
                visit(bytes);
              });
  compare_crc(name, entry, crc);
}

StringTensor Bundle::read_strings(const std::string& name, const BundleEntry& entry) const {
  if (entry.dtype != kTfString) {
    throw TypeError(message("[read_strings] tensor '", excerpt(name), "' has element type ",
                            tf_dtype_name(entry.dtype), ", expected string"));
  }
  const ByteSource& shard = *shards_.at(entry.shard);
  const auto offset = static_cast<std::uint64_t>(entry.offset);
  const std::string bytes = shard.read_string(offset, static_cast<std::uint64_t>(entry.size));
  std::uint32_t crc = 0;
  StringTensor out{entry.shape, decode_strings(shard.path(), name, offset, bytes,
                                               static_cast<std::uint64_t>(shape_size(entry.shape)),
                                               options_.verify_checksums, &crc)};
  compare_crc(name, entry, crc);
  return out;
}

void Bundle::verify_entry(const std::string& name, const BundleEntry& entry) const {
  if (!entry.slices.empty()) return;  // its slices are verified as themselves
  if (entry.dtype == kTfString) {
    read_strings(name, entry);
    return;
  }
  if (tf_dtype_size(entry.dtype) == 0) return;  // the checksum of such bytes is not known
  visit(name, entry, kVerifiedBytes, [](std::string_view) {});
}

void Bundle::verify() const {
  for (const auto& [name, entry] : entries_) verify_entry(name, entry);
  for (const auto& [name, entry] : slices_) verify_entry(name, entry);
}

}  // namespace openrnn::formats
