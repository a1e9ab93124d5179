// Writing numbers as JSON.
#pragma once

#include <string>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The shortest text that is read as the same float. Throws: UnsupportedError for infinity and NaN,
/// for which JSON has no text, naming `format`.
void append_number(float value, std::string_view format, std::string* out);
/// Nested lists of an array of float32.
void append_lists(const Array& values, std::string_view format, std::string* out);

/// The network with the biases that `per_gate` asks for and without forget_bias, if a file of the
/// format can hold it. Throws: UnsupportedError naming what it cannot.
MappedNetwork json_network(const MappedNetwork& given, std::string_view format, int per_gate);

}  // namespace openrnn::mapping
