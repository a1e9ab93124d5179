// Element types and shapes of datasets and attributes.
#pragma once

#include <optional>

#include "formats/hdf5/structure/objects.h"
#include "openrnn/base.h"

namespace openrnn::formats {

enum class Hdf5Kind : std::uint8_t {
  kNumber,
  kText,          // of a fixed size
  kVariableText,  // in the global heap
  kOther,
};

/// How text of a fixed size ends.
enum class Hdf5Padding : std::uint8_t { kZeroEnded, kZeros, kSpaces };

struct Hdf5Type {
  Hdf5Kind kind = Hdf5Kind::kOther;
  /// 'float32', 'int8', 'bool', 'string'; 'big-endian float32'; 'a compound type'.
  std::string name;
  /// Of an element, at least 1.
  std::uint64_t bytes = 0;
  Hdf5Padding padding = Hdf5Padding::kZeroEnded;
};

/// Throws: FormatError, UnsupportedError for a version of the file format that is not known.
Hdf5Type parse_type(const Hdf5File& file, std::uint64_t offset, std::string_view bytes);

/// Empty for a scalar; nothing for what has no elements at all (a null dataspace).
std::optional<Shape> parse_dataspace(const Hdf5File& file, std::uint64_t offset,
                                     std::string_view bytes);

}  // namespace openrnn::formats
