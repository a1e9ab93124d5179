// What the reader of a model file finds: which tensors there are, and where their elements are.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "formats/file/byte_source.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// A range of bytes that holds elements of one or several tensors.
struct Extent {
  const ByteSource* source = nullptr;
  std::uint64_t offset = 0, bytes = 0;
  /// CRC-32 of the bytes, where the file has one.
  std::optional<std::uint32_t> crc;
  /// The source has checksums of its own, which it compares when it is read from the start.
  bool source_checks = false;
};

/// The place of a tensor's elements, which a reader has checked to lie inside the extent.
struct TensorPlace {
  /// The number of the extent.
  std::size_t extent = 0;
  /// Bytes from the start of the extent to the first element.
  std::uint64_t first = 0;
  /// Of one with strides.
  std::size_t element_bytes = 0;
  /// In elements, none negative; empty: row-major without gaps.
  Shape strides = {};
};

/// Which extents have the checksum that they should have: a storage of many tensors is read for it
/// once. Thread-safe.
class VerifiedExtents {
 public:
  bool contains(std::size_t extent) const {
    const std::lock_guard lock(mutex_);
    return extents_.count(extent) > 0;
  }
  void add(std::size_t extent) {
    const std::lock_guard lock(mutex_);
    extents_.insert(extent);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::size_t> extents_;
};

struct FileContents {
  FileKind kind = FileKind::kUnknown;
  std::vector<std::shared_ptr<const ByteSource>> sources;
  std::vector<Extent> extents;
  std::vector<TensorInfo> tensors;
  /// One for each tensor.
  std::vector<TensorPlace> places;
  std::vector<NamedValue> values;
  std::unique_ptr<VerifiedExtents> verified = std::make_unique<VerifiedExtents>();
};

/// Opens a file of the same folder by its name.
using SourceOpener = std::function<std::unique_ptr<ByteSource>(const std::string& name)>;

/// Elements of a shape; nothing for a negative dimension or an overflow.
std::optional<std::uint64_t> element_count(const Shape& shape);
/// The DType of that name, if there is one.
std::optional<DType> find_dtype(std::string_view name);

/// Throws: ArgumentError naming `call` for names of tensors that a file cannot have: empty,
/// repeated, not UTF-8 or with a control character; and for a shape that is no shape.
void check_named_views(std::string_view call, std::span<const NamedView> tensors);

}  // namespace openrnn::formats
