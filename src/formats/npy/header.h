// The header of an array of numpy.save: a dictionary as Python prints it.
#pragma once

#include "formats/file/byte_source.h"
#include "openrnn/base.h"

namespace openrnn::formats {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

enum class NpyKind : std::uint8_t {
  kNumbers,
  kUnicode,  // 4 bytes a character
  kBytes,    // strings of bytes
  kObjects,  // a Python pickle, which nobody reads
  kOther,
};

struct NpyType {
  /// As TensorInfo::dtype: 'float32', 'string', 'object'; of what has no name of its own NumPy's.
  std::string name;
  /// 0 where it is not known.
  std::uint64_t element_bytes = 0;
  NpyKind kind = NpyKind::kNumbers;
};

struct NpyHeader {
  /// NumPy's name of the type: '<f4'.
  std::string descr;
  NpyType type;
  Shape shape;
  /// The first index is the fastest.
  bool columns_first = false;
  /// Where the elements begin, which reach to the end of the file.
  std::uint64_t offset = 0;
};

/// Throws: FormatError, also where type, shape and size of the file do not agree; UnsupportedError
/// for an unknown version.
NpyHeader read_npy_header(const ByteSource& file);

/// All that is in front of the elements.
std::string npy_prefix(std::string_view descr, const Shape& shape);
/// The same of an array. Throws: UnsupportedError naming `call` for bfloat16.
std::string npy_prefix(std::string_view call, const ConstArrayView& values);

}  // namespace openrnn::formats
