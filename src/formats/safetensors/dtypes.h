// Element types by their names in safetensors.
#pragma once

#include <optional>
#include <string_view>

#include "openrnn/base.h"

namespace openrnn::formats {

struct SafetensorsType {
  /// In the file.
  std::string_view code;
  /// The usual name; that of DType where it has the type.
  std::string_view name;
  /// Of an element.
  unsigned bits = 0;
};

/// nullptr for a code that is not known.
const SafetensorsType* find_safetensors_type(std::string_view code);
/// Throws: UnsupportedError for a dtype that the format lacks.
const SafetensorsType& safetensors_type_of(DType dtype);

}  // namespace openrnn::formats
