// Values beside the tensors as text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::mapping {

/// The key under which text_values lists those that are JSON.
inline constexpr std::string_view kJsonValues = "openrnn.json";

/// For files whose metadata are strings: strings as they are, everything else as JSON, whose names
/// are a list of JSON under kJsonValues. The last one of a name counts.
std::map<std::string, std::string> text_values(const std::vector<NamedValue>& values);
/// The inverse: without that list, and the values that it names as what they were. A text that it
/// names and that is none of a value stays as it is.
std::vector<NamedValue> typed_values(const std::vector<NamedValue>& texts);

/// The value of that name, if it is there and of that type.
template <class T>
const T* find_value(const std::vector<NamedValue>& values, std::string_view name) {
  for (const NamedValue& value : values) {
    if (value.name == name) return std::get_if<T>(&value.value);
  }
  return nullptr;
}

}  // namespace openrnn::mapping
