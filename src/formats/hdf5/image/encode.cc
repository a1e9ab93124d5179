#include "formats/hdf5/image/encode.h"

#include <algorithm>
#include <climits>

#include "formats/coding.h"

namespace openrnn::formats {

namespace {

// Class and version 1, then 24 bits of the class, then the size of an element.
std::string type_head(std::uint8_t type, std::uint32_t bits, std::uint32_t bytes) {
  std::string out;
  out += static_cast<char>(0x10 | type);
  for (unsigned i = 0; i < 3; ++i) out += static_cast<char>(bits >> (8 * i));
  put_fixed(&out, bytes);
  return out;
}

std::string integer_type(std::uint32_t bytes, bool is_signed) {
  std::string out = type_head(0, is_signed ? 8 : 0, bytes);
  put_fixed(&out, std::uint16_t{0});
  put_fixed(&out, static_cast<std::uint16_t>(bytes * CHAR_BIT));
  return out;
}

std::string float_type(std::uint32_t bytes, std::uint8_t exponent, std::uint8_t mantissa) {
  const std::uint32_t sign = bytes * CHAR_BIT - 1;
  std::string out = type_head(1, 0x20u | sign << 8, bytes);
  put_fixed(&out, std::uint16_t{0});
  put_fixed(&out, static_cast<std::uint16_t>(bytes * CHAR_BIT));
  put_fixed(&out, mantissa);  // where the exponent begins
  put_fixed(&out, exponent);
  put_fixed(&out, std::uint8_t{0});
  put_fixed(&out, mantissa);
  put_fixed(&out, (std::uint32_t{1} << (exponent - 1)) - 1);
  return out;
}

// NumPy's bool as h5py has it: an enumeration of int8.
std::string bool_type() {
  std::string out = type_head(8, 2, 1) + integer_type(1, true);
  for (const std::string_view name : {"FALSE", "TRUE"}) {
    out += name;
    out.append(8 - name.size(), '\0');
  }
  return out + std::string("\0\1", 2);
}

std::string fixed_text_type(std::uint32_t bytes) { return type_head(3, 1, bytes); }

// UTF-8 in the global heap, of bytes.
std::string variable_text_type() { return type_head(9, 0x101, 16) + integer_type(1, false); }

// A null dataspace, which version 2 alone has.
std::string no_elements() { return std::string("\2\0\0\2", 4); }

struct Encoded {
  std::string type, shape, data;
};

std::size_t longest(const std::vector<std::string>& texts) {
  std::size_t most = 1;
  for (const std::string& text : texts) most = std::max(most, text.size());
  return most;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) put_fixed(&out, value);
  return out;
}

Shape shape_of(std::size_t count) { return {static_cast<std::int64_t>(count)}; }

struct ValueEncoder {
  std::uint64_t heap;
  std::uint16_t heap_index;

  Encoded operator()(std::monostate) const { return {integer_type(1, true), no_elements(), {}}; }
  Encoded operator()(bool value) const {
    return {bool_type(), encode_shape({}), std::string(1, value ? '\1' : '\0')};
  }
  Encoded operator()(std::int64_t value) const {
    return {integer_type(8, true), encode_shape({}), bytes_of(std::vector{value})};
  }
  Encoded operator()(double value) const {
    return {float_type(8, 11, 52), encode_shape({}), bytes_of(std::vector{value})};
  }
  Encoded operator()(const std::string& value) const {
    std::string data;
    put_fixed(&data, static_cast<std::uint32_t>(value.size()));
    put_fixed(&data, heap);
    put_fixed(&data, std::uint32_t{heap_index});
    return {variable_text_type(), encode_shape({}), std::move(data)};
  }
  Encoded operator()(const std::vector<std::int64_t>& values) const {
    return {integer_type(8, true), encode_shape(shape_of(values.size())), bytes_of(values)};
  }
  Encoded operator()(const std::vector<double>& values) const {
    return {float_type(8, 11, 52), encode_shape(shape_of(values.size())), bytes_of(values)};
  }
  Encoded operator()(const std::vector<std::string>& values) const {
    const std::size_t width = longest(values);
    std::string data;
    for (const std::string& value : values) {
      data += value;
      data.append(width - value.size(), '\0');
    }
    return {fixed_text_type(static_cast<std::uint32_t>(width)),
            encode_shape(shape_of(values.size())), std::move(data)};
  }
};

}  // namespace

void pad8(std::string* out) { out->resize((out->size() + 7) / 8 * 8, '\0'); }

std::string encode_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return float_type(2, 5, 10);
    case DType::kBfloat16:
      // Opaque with an empty tag, as h5py stores NumPy's; an attribute says what it is.
      return type_head(5, 0, 2);
    case DType::kFloat32:
      return float_type(4, 8, 23);
    case DType::kFloat64:
      return float_type(8, 11, 52);
    case DType::kInt32:
      return integer_type(4, true);
    case DType::kInt64:
      return integer_type(8, true);
    case DType::kUInt8:
      return integer_type(1, false);
    case DType::kBool:
      return bool_type();
  }
  return {};
}

std::string encode_shape(const Shape& shape) {
  std::string out("\1", 1);
  put_fixed(&out, static_cast<std::uint8_t>(shape.size()));
  out.append(6, '\0');
  for (const std::int64_t size : shape) put_fixed(&out, size);
  return out;
}

std::string encode_attribute(const std::string& name, const PlainValue& value, std::uint64_t heap,
                             std::uint16_t heap_index) {
  Encoded parts = std::visit(ValueEncoder{heap, heap_index}, value);
  std::string out("\1\0", 2);
  put_fixed(&out, static_cast<std::uint16_t>(name.size() + 1));
  put_fixed(&out, static_cast<std::uint16_t>(parts.type.size()));
  put_fixed(&out, static_cast<std::uint16_t>(parts.shape.size()));
  out += name;
  out += '\0';
  pad8(&out);
  out += parts.type;
  pad8(&out);
  out += parts.shape;
  pad8(&out);
  return out + parts.data;
}

void ObjectHeader::add(std::uint16_t type, std::string bytes) {
  pad8(&bytes);
  put_fixed(&messages_, type);
  put_fixed(&messages_, static_cast<std::uint16_t>(bytes.size()));
  messages_.append(4, '\0');  // flags
  messages_ += bytes;
  ++count_;
}

std::string ObjectHeader::finish() const {
  std::string out("\1\0", 2);
  put_fixed(&out, count_);
  put_fixed(&out, std::uint32_t{1});  // links to it
  put_fixed(&out, static_cast<std::uint32_t>(messages_.size()));
  out.append(4, '\0');
  return out + messages_;
}

}  // namespace openrnn::formats
