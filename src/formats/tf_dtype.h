// TensorFlow's element types by the numbers that its files hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "openrnn/base.h"

namespace openrnn::formats {

inline constexpr int kTfString = 7;

/// 'float32', 'bfloat16', ...; "unknown (77)" for a number that has no name.
std::string tf_dtype_name(int number);
/// Bytes of an element; 0 for strings, variants and unknown numbers.
std::size_t tf_dtype_size(int number);
/// The DType with the same elements, if there is one.
std::optional<DType> from_tf_dtype(int number);
int to_tf_dtype(DType dtype);

}  // namespace openrnn::formats
