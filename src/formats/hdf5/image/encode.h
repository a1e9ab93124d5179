// Element types, shapes and messages as HDF5 stores them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "openrnn/formats_model_file.h"

namespace openrnn::formats {

/// The largest message of an object header, without its head.
inline constexpr std::size_t kMaxHdf5Message = 65528;

/// Zeros up to a multiple of 8 bytes.
void pad8(std::string* out);

std::string encode_type(DType dtype);
/// Rank 0 for an empty shape.
std::string encode_shape(const Shape& shape);

/// An attribute message. A string is in the global heap, as object `heap_index` of the collection
/// at `heap`; a list of strings has elements of the longest one's size, as Keras has it.
std::string encode_attribute(const std::string& name, const PlainValue& value, std::uint64_t heap,
                             std::uint16_t heap_index);

/// Messages with their heads, as one object header of version 1.
class ObjectHeader {
 public:
  void add(std::uint16_t type, std::string bytes);
  std::string finish() const;

 private:
  std::string messages_;
  std::uint16_t count_ = 0;
};

}  // namespace openrnn::formats
