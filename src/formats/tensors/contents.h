// What the reader of a model file finds: which tensors there are, and where their elements are.
#pragma once

#include <memory>

#include "formats/file/byte_source.h"
#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// The place of a tensor's elements, which a reader has checked to lie inside the source.
struct TensorPlace {
  const ByteSource* source = nullptr;
  std::uint64_t offset = 0;
};

struct FileContents {
  FileKind kind = FileKind::kUnknown;
  std::vector<std::unique_ptr<ByteSource>> sources;
  std::vector<TensorInfo> tensors;
  /// One for each tensor.
  std::vector<TensorPlace> places;
  std::vector<NamedValue> values;
};

/// Elements of a shape; nothing for a negative dimension or an overflow.
std::optional<std::uint64_t> element_count(const Shape& shape);
/// The DType of that name, if there is one.
std::optional<DType> find_dtype(std::string_view name);

/// Throws: ArgumentError naming `call` for names of tensors that a file cannot have: empty,
/// repeated, not UTF-8 or with a control character; and for a shape that is no shape.
void check_named_views(std::string_view call, std::span<const NamedView> tensors);

}  // namespace openrnn::formats
