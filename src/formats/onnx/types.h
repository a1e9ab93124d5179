// The element types of ONNX.
#pragma once

#include <cstdint>
#include <string_view>

namespace openrnn::formats {

inline constexpr std::int32_t kOnnxString = 8, kOnnxBool = 9;

struct OnnxType {
  std::int32_t number;
  /// As dtype_name, where there is a DType.
  std::string_view name;
  /// Of one element; 0 for strings.
  unsigned bits;
  /// The field of TensorProto that holds the elements where raw_data does not.
  std::uint32_t field;
};

/// Null for an unknown number.
const OnnxType* find_onnx_type(std::int32_t number);

}  // namespace openrnn::formats
