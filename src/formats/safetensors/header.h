// The JSON of safetensors: the header of a file, and the index of several.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::formats {

/// One tensor of a header, as it says; nothing is checked but the types.
struct HeaderTensor {
  std::string name, dtype;
  Shape shape;
  /// Its bytes, counted from the end of the header.
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<HeaderTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// `path` and `offset` of the JSON are for messages. Throws: FormatError for what is no header, a
/// name that is there twice, or one that is not printable UTF-8.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::uint64_t offset,
                                           std::string_view json);

struct SafetensorsIndex {
  /// Tensor and the name of its file, in the order of the index.
  std::vector<std::pair<std::string, std::string>> weight_map;
  /// The values that are strings or integers, as text.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Throws: FormatError for what is no index, a tensor that is there twice, and the name of a file
/// that is not in the same folder.
SafetensorsIndex parse_safetensors_index(const std::string& path, std::string_view json);

}  // namespace openrnn::formats
